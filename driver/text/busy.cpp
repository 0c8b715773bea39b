// SPDX-License-Identifier: Apache-2.0
// Busy time charts as text: for each hot loop the busy time of each unit, the time's parts, performance data, class,
// and advice.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "attribution/busy/loop_figures.h"
#include "attribution/busy/wait_places.h"
#include "attribution/model/sentences.h"
#include "attribution/roofline/roofline.h"
#include "driver/text/counters.h"
#include "driver/text/performance.h"
#include "driver/text/report.h"
#include "driver/words/busy_words.h"
#include "driver/words/roofline_words.h"
#include "models/machine_json.h"

namespace crosstalk::driver {
namespace {

using attribution::LoopFigures;
using attribution::LoopRow;
using models::Unit;

constexpr double hot_loop_share = 0.03;  // of CPU time; the other formats list colder loops
constexpr int label_columns = 22;
constexpr int share_columns = 8;

int bar_room(const Canvas& canvas) {
  constexpr int beside = 4 + label_columns + 2 + share_columns + 2 + 14;
  return std::clamp(canvas.width() - beside, 8, 50);  // 8: all that a line of 60 columns has left
}

/// "1.3 Gflop/s", "12 B/s".
std::string rate_text(double per_s, Unit unit) {
  const std::string count = count_text(per_s);
  return count + (count.find(' ') == std::string::npos ? " " : "") + (unit == Unit::fpu ? "flop/s" : "B/s");
}

void draw_busy(Canvas& canvas, const LoopFigures& figures) {
  const int columns = bar_room(canvas);
  for (const Unit unit : models::all_units) {
    const models::BusyTime& time = figures.busy[unit];
    if (!time.exists) {
      continue;
    }
    const std::string label = "    " + pad_right(models::unit_in_words(unit), label_columns) + "  ";
    if (!time.of_effective) {
      canvas.paragraph(label, "not known: " + figures.reasons[unit]);
      continue;
    }
    const std::string rate = figures.per_s[unit] ? rate_text(*figures.per_s[unit], unit) : "";
    std::string line = label;
    line += canvas.colored(bar(std::min(1.0, *time.of_effective), columns, canvas.style().charset), Hue::true_sharing);
    line.append("  ").append(pad_left(percent_text(*time.of_effective), share_columns)).append("  ").append(rate);
    canvas.line(line);
  }
}

void draw_class(Canvas& canvas, const LoopFigures& figures) {
  if (figures.busy_class.evidence.empty()) {
    return;
  }
  const std::string what =
      figures.busy_class.which ? class_in_words(*figures.busy_class.which) : std::string("not known");
  canvas.paragraph("    class: ", what + ". " + figures.busy_class.evidence);
  for (const std::string& note : figures.notes) {
    canvas.paragraph("    note: ", note);
  }
  for (const models::ApplicationCandidate& candidate : figures.application.candidates) {
    canvas.paragraph("    kind, perhaps: ", fmt::format("{} ({}). {}", application_in_words(candidate.which),
                                                        static_cast<int>(candidate.which) + 1, candidate.evidence));
  }
}

/// The loops of the analysis in the rooflines of the session's machine; none without a calibration.
attribution::Roofline roofline_of_session(const attribution::Analysis& analysis) {
  const auto machine = models::parse_machine(analysis.session.machine);
  return machine ? attribution::roofline_of(analysis, *machine) : attribution::Roofline{};
}

void draw_roofline(Canvas& canvas, const attribution::Roofline& roofline, const LoopRow& loop) {
  using attribution::RooflineModel;
  const auto found = std::find_if(roofline.loops.begin(), roofline.loops.end(),
                                  [&](const auto& placed) { return &placed.row() == &loop; });
  if (found != roofline.loops.end()) {
    const auto& point = found->place(RooflineModel::carm)->points.front();
    canvas.paragraph("    roofline: ",
                     fmt::format("{} at {} flop/B. {}", rate_in_words(point.y.value(), "flop/s"),
                                 intensity_in_words(point.x.value()), verdict_in_words(*found, RooflineModel::carm)));
  }
}

/// The hot loop inside `outer` that has nearly all of its time; null: there is none.
const LoopRow* all_inside(const attribution::Analysis& analysis, const LoopRow& outer) {
  constexpr double nearly_all = 0.95;
  const auto inner = std::find_if(analysis.loops.begin(), analysis.loops.end(), [&](const LoopRow& loop) {
    return loop.parent == outer.id && loop.figures && loop.share >= hot_loop_share &&
           loop.cpu_s >= nearly_all * outer.cpu_s;
  });
  return inner != analysis.loops.end() ? &*inner : nullptr;
}

/// Says which loop around `loop` has no entry of its own.
void draw_outer(Canvas& canvas, const attribution::Analysis& analysis, const LoopRow& loop) {
  for (const LoopRow& outer : analysis.loops) {
    if (loop.parent == outer.id && outer.figures && all_inside(analysis, outer) == &loop) {
      const std::string place = source_text(outer.file, outer.line_begin, outer.line_end);
      canvas.paragraph("    note: ", "the loop around it" + (place.empty() ? "" : " (" + place + ")") +
                                         " spends nearly all of its time in this one, so it has no entry of its own");
    }
  }
}

void draw_loop(Canvas& canvas, const attribution::Analysis& analysis, const attribution::Roofline& roofline,
               const LoopRow& loop) {
  const LoopFigures& figures = *loop.figures;
  const std::string place = source_text(loop.file, loop.line_begin, loop.line_end);
  canvas.blank();
  canvas.line("  " + canvas.colored(place_cell(canvas, loop.function, place, canvas.width() - 12), Hue::strong) +
              pad_left(percent_text(loop.share), share_columns));
  if (!figures.busy_class.evidence.empty()) {  // else the machine is not calibrated
    draw_busy(canvas, figures);
  }
  draw_outer(canvas, analysis, loop);
  if (loop.samples != 0 && loop.samples < attribution::few_samples) {
    canvas.paragraph("    note: ", "it rests on " + attribution::count_of(loop.samples, "sample", "samples") +
                                       ": all of this is a hint only");
  }
  canvas.line("    " + pad_right("where the time went", label_columns) + "  " +
              stacked(figures.waits, bar_room(canvas)));
  canvas.paragraph("      ", waits_in_words(figures.waits));
  draw_performance(canvas, analysis, loop);
  draw_roofline(canvas, roofline, loop);
  if (figures.counters) {
    canvas.paragraph("    counters: ", counters_in_words(*figures.counters));
  }
  draw_class(canvas, figures);
  for (const models::Remedy& remedy : figures.advice) {
    canvas.paragraph(std::string("    ") + canvas.sign("→ ", "> "),
                     remedy.title + ". " + remedy.why + " " + remedy.evidence);
  }
}

/// Draws one bar for each thread, over its elapsed time.
void draw_threads_waits(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most) {
  std::vector<const attribution::ThreadSummary*> shown;
  for (const attribution::ThreadSummary& thread : analysis.threads) {
    if (thread.waits && thread.listed && thread.samples > 0) {
      shown.push_back(&thread);
    }
  }
  if (shown.empty()) {
    return;
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const auto* a, const auto* b) { return a->waits->total() > b->waits->total(); });
  const std::size_t left_out = shown.size() - std::min(most, shown.size());
  shown.resize(shown.size() - left_out);
  canvas.heading("Where threads' time went", "of their elapsed time, by the letters below");
  models::CycleAccount all;
  for (const attribution::ThreadSummary* thread : shown) {
    for (const WaitPart& part : wait_parts) {
      if (const auto& seconds = (*thread->waits)[part.which]) {
        all.at(part.which) = all[part.which].value_or(0) + *seconds;
      }
    }
    canvas.line("    " + canvas.cell(thread_label(analysis, thread->index), label_columns) + "  " +
                stacked(*thread->waits, bar_room(canvas)) + "  " +
                pad_left(seconds_text(thread->waits->total()), share_columns));
  }
  if (left_out > 0) {
    canvas.line("    and " + attribution::count_of(left_out, "more thread", "more threads"));
  }
  canvas.paragraph("      ", waits_in_words(all));
}

/// Draws the counters of the threads that ran longest.
void draw_threads_counters(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most) {
  if (!analysis.counters || analysis.counters->threads.empty()) {
    return;
  }
  canvas.heading("Hardware counters", "of threads, a second of their CPU time; in user mode");
  std::size_t shown = 0;
  for (const attribution::CounterSummary::Thread& thread : analysis.counters->threads) {
    if (thread.thread < analysis.threads.size() && analysis.threads[thread.thread].listed && shown++ < most) {
      canvas.paragraph("    " + pad_right(thread_label(analysis, thread.thread), label_columns) + "  ",
                       counters_in_words(thread.rates));
    }
  }
}

/// "on queue.guard: 1.2 s, other: 300 ms"; empty: the objects are not known.
std::string awaited_in_words(const attribution::WaitPlace& place) {
  constexpr std::size_t most_objects = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(most_objects, place.objects.size()); ++i) {
    const attribution::WaitPlace::Object& object = place.objects[i];
    attribution::ObjectRow row;
    row.name = object.name, row.field = object.field, row.place = object.place;
    text += (i == 0 ? "on " : ", ") + attribution::object_in_words(row) +
            (place.objects.size() > 1 ? ": " + seconds_text(object.waited_s) : "");
  }
  return text + (place.objects.size() > most_objects ? ", and others" : "");
}

/// Returns the evidence for the time of waits: "1.20 k waits", "240 samples".
std::string evidence_of(const attribution::WaitPlace& place) {
  const std::uint64_t number = place.sampled ? place.looks : place.count;
  return pad_left(count_text(static_cast<double>(number)), share_columns) + (place.sampled ? " samples" : " waits");
}

/// Draws the longest waits for other threads, by place.
void draw_wait_places(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most) {
  constexpr double least = 0.005;  // of the elapsed time
  std::vector<const attribution::WaitPlace*> shown;
  for (const attribution::WaitPlace& place : analysis.wait_places) {
    if (place.waited_s >= least * analysis.duration_s && shown.size() < most) {
      shown.push_back(&place);
    }
  }
  if (shown.empty()) {
    return;
  }
  constexpr int kind_columns = 10;
  const bool sampled = std::any_of(shown.begin(), shown.end(), [](const auto* place) { return place->sampled; });
  canvas.heading("Where threads waited for each other", sampled
                                                            ? "time asleep, sampled from outside; all threads together"
                                                            : "measured; all threads together");
  for (const attribution::WaitPlace* place : shown) {
    const std::string name = place->function.empty() ? "[other places]" : place->function;
    const char* const kind = place->for_end ? "join" : attribution::wait_kind_name(place->kind);
    canvas.line("    " + pad_right(kind, kind_columns) + "  " +
                place_cell(canvas, name, source_text(place->file, place->line), canvas.width() - 46) + "  " +
                pad_left(seconds_text(place->waited_s), share_columns) + "  " + evidence_of(*place));
    if (const std::string awaited = awaited_in_words(*place); !awaited.empty() && !place->for_end) {
      canvas.paragraph("      ", awaited);
    }
  }
}

}  // namespace

void draw_busy_times(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most) {
  std::vector<const LoopRow*> shown;
  for (const LoopRow& loop : analysis.loops) {
    if (loop.figures && loop.share >= hot_loop_share && shown.size() < most && all_inside(analysis, loop) == nullptr) {
      shown.push_back(&loop);
    }
  }
  canvas.heading("Busy times and waits", "shares of a loop's CPU time; a unit's: its work at its measured peak rate");
  for (const attribution::Warning& warning : analysis.warnings) {
    if (warning.code == "no_calibration") {
      canvas.paragraph("  ", warning.message);
    }
  }
  if (shown.empty()) {
    canvas.line("  No loop takes 3 % of the CPU time, or none is known.");
  }
  const attribution::Roofline roofline = roofline_of_session(analysis);
  for (const LoopRow* loop : shown) {
    draw_loop(canvas, analysis, roofline, *loop);
  }
  draw_threads_waits(canvas, analysis, 2 * most);
  draw_threads_counters(canvas, analysis, most);
  draw_wait_places(canvas, analysis, most);
}

}  // namespace crosstalk::driver
