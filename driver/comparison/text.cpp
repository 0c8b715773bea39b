// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "attribution/comparison/wait_rows.h"
#include "attribution/objects/sharing_kind.h"
#include "driver/comparison/report.h"
#include "driver/text/report.h"

namespace crosstalk::driver {

namespace {

using attribution::Analysis;
using attribution::comparison::Comparison;
using attribution::comparison::Figure;
using attribution::comparison::LoopChange;
using attribution::comparison::Matched;
using attribution::comparison::Place;
using attribution::comparison::Row;
using attribution::comparison::Unit;
using attribution::comparison::Verdict;
using attribution::comparison::waits_in_words;

constexpr std::size_t most_rows = 8;
constexpr int diff_figure_columns = 9;
constexpr int interval_columns = 22;
constexpr int verdict_columns = 7;

/// False on a narrow terminal, which has no room for intervals.
bool shows_interval(const Canvas& canvas) { return canvas.width() >= 90; }

/// Formats seconds, or a share of CPU time.
std::string figure_text(double value, Unit unit) {
  return unit == Unit::seconds ? seconds_text(value) : percent_text(value);
}

/// Formats a cost; without a detection, its upper bound.
std::string cost_text(const Canvas& canvas, const Figure& cost, bool seen, Unit unit) {
  if (!cost.value && !cost.ci95) {
    return "-";
  }
  if (!seen || !cost.value) {
    return canvas.sign("≤ ", "<") + figure_text(cost.ci95 ? cost.ci95->high : 0, unit);
  }
  return figure_text(*cost.value, unit);
}

std::string signed_text(double value, Unit unit) {
  return (value > 0 ? "+" : value < 0 ? "-" : "") + figure_text(std::fabs(value), unit);
}

std::string change_text(const Figure& change, Unit unit) {
  return change.value ? signed_text(*change.value, unit) : "-";
}

std::string interval_text(const Figure& change, Unit unit) {
  return change.ci95 ? signed_text(change.ci95->low, unit) + " to " + signed_text(change.ci95->high, unit) : "-";
}

Hue verdict_hue(Verdict verdict) {
  switch (verdict) {
    case Verdict::better:
      return Hue::true_sharing;
    case Verdict::worse:
      return Hue::false_sharing;
    case Verdict::less:
    case Verdict::more:
      return Hue::plain;
    case Verdict::same:
    case Verdict::unknown:
      break;
  }
  return Hue::faint;
}

struct Columns {
  std::string verdict, before, after, change, interval;
};

int name_columns(const Canvas& canvas) {
  return canvas.width() - 2 - verdict_columns - 3 * (2 + diff_figure_columns) -
         (shows_interval(canvas) ? 2 + interval_columns : 0) - 2;
}

std::string laid_out(const Canvas& canvas, const Columns& columns, Hue hue) {
  return "  " + canvas.colored(pad_right(columns.verdict, verdict_columns), hue) + "  " +
         canvas.right_cell(columns.before, diff_figure_columns) + "  " +
         canvas.right_cell(columns.after, diff_figure_columns) + "  " +
         canvas.right_cell(columns.change, diff_figure_columns) + "  " +
         (shows_interval(canvas) ? canvas.right_cell(columns.interval, interval_columns) + "  " : "");
}

void draw_header(Canvas& canvas, const std::string& name) {
  const std::string header = laid_out(canvas, {"", "before", "after", "change", "95 % interval"}, Hue::plain) +
                             fit_end(name, name_columns(canvas), canvas.style().charset);
  canvas.line(canvas.colored(header, Hue::faint));
}

const char* verdict_text(Verdict verdict) {
  return verdict == Verdict::same ? "-" : verdict == Verdict::unknown ? "?" : verdict_name(verdict);
}

Figure in_unit(const Figure& figure, double cpu_s, Unit unit) {
  return unit == Unit::seconds ? figure : cpu_s > 0 ? scaled(figure, 1 / cpu_s) : Figure{};
}

std::string row_columns(const Canvas& canvas, const Row& row, const Comparison& c) {
  const Figure& change = judged_change(row, c.unit);
  return laid_out(canvas,
                  {verdict_text(row.verdict),
                   cost_text(canvas, in_unit(row.before.cost, c.before_cpu_s, c.unit), row.before.seen > 0, c.unit),
                   cost_text(canvas, in_unit(row.after.cost, c.after_cpu_s, c.unit), row.after.seen > 0, c.unit),
                   change_text(change, c.unit), interval_text(change, c.unit)},
                  verdict_hue(row.verdict));
}

std::string place_text(const Place& place) {
  const std::string source = source_text(place.file, place.line);
  return source.empty() ? (place.function.empty() ? "unknown code" : place.function) : source;
}

/// Formats "a.cpp:14", "a.cpp:14 → 20" or "a.h:3 → b.cpp:20": a common file or line appears once.
std::string ends_of(const Canvas& canvas, const Place& producer, const Place& consumer) {
  std::string from = place_text(producer);
  const std::string to = place_text(consumer);
  if (from == to) {
    return from;
  }
  const bool one_file = !producer.file.empty() && producer.file == consumer.file && consumer.line != 0;
  return from + canvas.sign(" → ", " -> ") + (one_file ? std::to_string(consumer.line) : to);
}

/// Cuts labels at the end, because their beginnings tell them apart.
std::string label_cell(const Canvas& canvas, const std::string& label) {
  const int room = name_columns(canvas);
  return pad_right(fit_end(canvas.clean(label), room, canvas.style().charset), room);
}

const char* matched_note(Matched matched) {
  return matched == Matched::gone ? "gone: " : matched == Matched::appeared ? "new: " : "";
}

std::string object_label(const Canvas& /*canvas*/, const Row& row) {
  const auto& kind = row.subject.sharing;
  std::string text = matched_note(row.matched) + row.subject.name;
  text += kind ? std::string("  ") + sharing_kind_name(*kind) : "";
  return text + (row.matched == Matched::both && row.was.name != row.subject.name ? ", was " + row.was.name : "");
}

std::string line_label(const Canvas& canvas, const Row& row) {
  const auto& now = row.subject;
  std::string text = matched_note(row.matched) + ends_of(canvas, now.producer_at, now.consumer_at);
  const std::string was = ends_of(canvas, row.was.producer_at, row.was.consumer_at);
  const bool moved = row.matched == Matched::both && was != ends_of(canvas, now.producer_at, now.consumer_at);
  return text + (moved ? ", was " + was : "") + (now.name.empty() ? "" : "  " + now.name);
}

std::string thread_label_of(const Canvas& canvas, const Row& row) {
  return matched_note(row.matched) + row.subject.producer + canvas.sign(" → ", " -> ") + row.subject.name;
}

const char* unit_note(Unit unit) {
  return unit == Unit::seconds ? "seconds of thread time in communicating accesses"
                               : "part of all CPU time that is spent in communicating accesses";
}

using Label = std::string (*)(const Canvas&, const Row&);

void draw_rows(Canvas& canvas, const Comparison& c, const std::vector<Row>& rows, const char* title, const char* head,
               Label label) {
  if (rows.empty()) {
    return;
  }
  canvas.heading(title, unit_note(c.unit));
  draw_header(canvas, head);
  if (&rows == &c.objects && rows.size() > 1) {
    canvas.line(row_columns(canvas, c.total, c) + label_cell(canvas, "all communication"));
  }
  for (std::size_t i = 0; i < std::min(most_rows, rows.size()); ++i) {
    canvas.line(row_columns(canvas, rows[i], c) + label_cell(canvas, label(canvas, rows[i])));
  }
  draw_more(canvas, rows.size(), most_rows, ": --format json or csv");
}

/// Formats the time of an iteration if it is known, else the loop's time.
std::string loop_columns(const Canvas& canvas, const LoopChange& loop, const Comparison& c) {
  const bool iterations = loop.change.iteration_s.ci95.has_value();
  const Unit unit = iterations ? Unit::seconds : c.unit;
  const auto& of = [&](const attribution::comparison::LoopFigures& figures) -> const Figure& {
    return iterations ? figures.iteration_s : unit == Unit::seconds ? figures.cpu_s : figures.share;
  };
  const bool both = loop.matched == Matched::both;
  return laid_out(canvas,
                  {verdict_text(loop.verdict), cost_text(canvas, of(loop.before), true, unit),
                   cost_text(canvas, of(loop.after), true, unit), both ? change_text(of(loop.change), unit) : "-",
                   both ? interval_text(of(loop.change), unit) : "-"},
                  verdict_hue(loop.verdict)) +
         label_cell(canvas, (iterations ? "1 iteration: " : "") + std::string(matched_note(loop.matched)) +
                                place_text(loop.subject) +
                                (loop.line_end > loop.subject.line ? "-" + std::to_string(loop.line_end) : "") + "  " +
                                (loop.subject.line == 0 ? "" : loop.subject.function));
}

void draw_loop_changes(Canvas& canvas, const Comparison& c) {
  constexpr double least_share = 0.01;
  std::vector<const LoopChange*> shown;
  for (const LoopChange& loop : c.loops) {
    if (std::max(loop.before.share.value.value_or(0), loop.after.share.value.value_or(0)) >= least_share) {
      shown.push_back(&loop);
    }
  }
  if (shown.empty()) {
    return;
  }
  canvas.heading("Loops", c.unit == Unit::seconds
                              ? "seconds of CPU time, of one iteration where iterations are known"
                              : "part of all CPU time, or seconds of one iteration where iterations are known");
  draw_header(canvas, "loop");
  for (std::size_t i = 0; i < std::min(most_rows, shown.size()); ++i) {
    canvas.line(loop_columns(canvas, *shown[i], c));
  }
}

void draw_waits(Canvas& canvas, const Comparison& c) {
  if (c.waits.empty()) {
    return;
  }
  canvas.heading("Waits for other threads", "seconds of thread time, asleep or not");
  draw_header(canvas, "waits");
  for (const attribution::comparison::WaitRow& row : c.waits) {
    const bool both = row.before.known() && row.after.known();
    canvas.line(laid_out(canvas,
                         {verdict_text(row.verdict), cost_text(canvas, row.before, true, Unit::seconds),
                          cost_text(canvas, row.after, true, Unit::seconds), change_text(row.change, Unit::seconds),
                          interval_text(row.change, Unit::seconds)},
                         verdict_hue(row.verdict)) +
                label_cell(canvas, std::string(waits_in_words(row.what)) + (both ? "" : ", measured in one")));
  }
}

void draw_profile(Canvas& canvas, const std::string& name, const Analysis& analysis) {
  const std::string facts =
      fmt::format("{} elapsed, {} thread{}, {} CPU time{}", seconds_text(analysis.duration_s), analysis.threads.size(),
                  analysis.threads.size() == 1 ? "" : "s", seconds_text(analysis.cpu_s),
                  analysis.session.exit_status ? fmt::format(", exit status {}", *analysis.session.exit_status) : "");
  canvas.line(canvas.colored(canvas.cell(name + analysis.session.command, canvas.width()), Hue::strong));
  canvas.line(canvas.colored("        " + canvas.cell(facts, canvas.width() - 8), Hue::faint));
}

void draw_conditions(Canvas& canvas, const DiffReport& report) {
  if (report.conditions.empty()) {
    return;
  }
  canvas.heading("Conditions");
  for (const JudgedCondition& judged : report.conditions) {
    canvas.paragraph(std::string("  ") + canvas.sign("• ", "* "), condition_in_words(judged));
  }
}

}  // namespace

const char* matched_name(Matched matched) {
  return matched == Matched::gone ? "gone" : matched == Matched::appeared ? "new" : "both";
}

/// "; to decide it, record both for about 48 s", of seconds rounded up to two digits.
static std::string longer_recording(const std::optional<double>& seconds) {
  if (!seconds || !(*seconds > 0)) {
    return {};
  }
  const double unit = std::max(1.0, std::pow(10, std::floor(std::log10(*seconds)) - 1));
  return fmt::format("; to decide it, record both for about {:.0f} s", std::ceil(*seconds / unit) * unit);
}

std::string condition_in_words(const JudgedCondition& judged) {
  const auto& figure = judged.judgement.figure;
  const auto& condition = judged.condition;
  const auto number = [&](double value) {
    if (condition.is_part) {
      return fmt::format("{:.3g} %", value * 100);
    }
    return condition.metric == attribution::comparison::Metric::count ? fmt::format("{:.3g}", value)
                                                                      : fmt::format("{:.3g} s", value);
  };
  std::string value;
  if (figure.ci95) {
    value = figure.ci95->low == figure.ci95->high ? number(figure.ci95->low)
                                                  : number(figure.ci95->low) + " to " + number(figure.ci95->high);
  }
  if (!judged.judgement.judged) {
    return judged.judgement.blind.empty() ? "not judged: " + condition.text + " (not known)"
                                          : "undecided: " + condition.text + " (" + judged.judgement.blind + ")" +
                                                longer_recording(judged.judgement.record_s);
  }
  return std::string(judged.judgement.holds ? "holds: " : "does not hold: ") + condition.text +
         (value.empty() ? "" : " (it is " + value + ")") +
         (judged.judgement.of.empty() ? "" : " of " + judged.judgement.of);
}

std::string render_diff_text(const DiffReport& report, TextStyle style) {
  Canvas canvas(style);
  const Comparison& c = report.comparison;
  draw_profile(canvas, "before  ", *report.before);
  draw_profile(canvas, "after   ", *report.after);
  canvas.blank();
  for (const auto& statement : c.statements) {
    canvas.paragraph(std::string("  ") + canvas.sign("• ", "* "), statement.sentence);
  }
  draw_conditions(canvas, report);
  draw_rows(canvas, c, c.objects, "Objects", "object", object_label);
  draw_rows(canvas, c, c.lines, "Source lines", "who stores, who accesses", line_label);
  if (c.threads.size() > 1) {  // one pair of names would repeat the figures of all communication
    draw_rows(canvas, c, c.threads, "Threads", "by name", thread_label_of);
  }
  draw_waits(canvas, c);
  draw_loop_changes(canvas, c);
  canvas.heading("How it was compared");
  canvas.paragraph("  ",
                   fmt::format("{} Intervals are 95 %; beside sampling they allow for {:.3g} % by which runs of one "
                               "program differ anyway. A change whose interval holds 0 is none that can be told.",
                               c.unit_reason, c.run_to_run * 100));
  for (const attribution::Warning& warning : c.warnings) {
    canvas.paragraph(std::string("  ") + canvas.sign("• ", "* "), "Warning: " + warning.message);
  }
  return canvas.take();
}

}  // namespace crosstalk::driver
