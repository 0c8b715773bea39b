// SPDX-License-Identifier: Apache-2.0
#include "driver/svg/busy.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "attribution/busy/loop_figures.h"
#include "driver/svg/canvas.h"
#include "driver/text/report.h"
#include "driver/words/busy_words.h"

namespace crosstalk::driver {
namespace {

using attribution::Analysis;
using attribution::LoopFigures;
using attribution::LoopRow;
using attribution::ThreadSummary;
using models::Unit;
using Anchor = SvgCanvas::Anchor;
using Font = SvgCanvas::Font;

// Units of the page, 96 to the inch: A4 is 794 wide and 1123 high.
constexpr double page_width = 794, page_height = 1123, margin = 36;
constexpr double chart_height = 92, chart_step = 142;
constexpr double axis_x = margin + 52;
constexpr double bar_width = 34, bar_step = 62;
constexpr double account_x = 440, account_width = 44;
constexpr std::size_t most_loops = 5, most_threads = 24;
constexpr double hot = 0.03;  // of CPU time
constexpr double worth_naming = 0.03;

const Font heading{12.5, true};
const Font plain{10.5};
const Font faint{9.5, false, "#5d6570"};
const Font centred{9.5, false, "#1d2229", Anchor::middle};
const Font axis_font{9, false, "#5d6570", Anchor::end};

struct Chart {
  double top = 0, most_s = 0;  // seconds at full height
  [[nodiscard]] double bottom() const { return top + chart_height; }
  [[nodiscard]] double height_of(double seconds) const {
    return most_s > 0 ? chart_height * std::clamp(seconds / most_s, 0.0, 1.0) : 0;
  }
};

void draw_axis(SvgCanvas& canvas, const Chart& chart, double right) {
  for (const double part : {0.0, 0.5, 1.0}) {
    const double y = chart.bottom() - part * chart_height;
    canvas.line(axis_x, y, right, y, part == 0 ? "#5d6570" : "#dfe2e6");
    canvas.text(axis_x - 6, y + 3, part == 0 ? "0" : seconds_text(part * chart.most_s), axis_font);
  }
}

/// Draws one stacked bar of a time's parts, the first at the bottom.
void draw_account(SvgCanvas& canvas, const Chart& chart, double x, double width, const models::CycleAccount& account) {
  double y = chart.bottom();
  for (const WaitPart& part : wait_parts) {
    const double seconds = account[part.which].value_or(0);
    const double height = chart.height_of(seconds);
    if (height > 0) {
      y -= height;
      canvas.rect(
          {x, y, width, height}, part.fill,
          fmt::format("{}: {} ({})", part.words, seconds_text(seconds), percent_text(seconds / account.total())));
    }
  }
  canvas.line(x, y, x + width, y, "#5d6570");
}

/// Names the greatest parts beside a bar.
void name_parts(SvgCanvas& canvas, const Chart& chart, double x, const models::CycleAccount& account) {
  std::vector<const WaitPart*> shown;
  for (const WaitPart& part : wait_parts) {
    if (account[part.which].value_or(0) >= worth_naming * account.total()) {
      shown.push_back(&part);
    }
  }
  constexpr double step = 13;
  double y = chart.bottom() - 2;
  for (const WaitPart* part : shown) {
    canvas.rect({x, y - 8, 9, 9}, part->fill);
    canvas.text(x + 14, y, fmt::format("{} {}", part->words, percent_text(*account[part->which] / account.total())),
                plain, 44);
    y -= step;
  }
}

void draw_unit(SvgCanvas& canvas, const Chart& chart, double x, Unit unit, const models::BusyTime& time) {
  const char* const name = unit == Unit::fpu ? "FP units" : models::unit_in_words(unit);
  canvas.text(x + bar_width / 2, chart.bottom() + 13, name, centred);
  if (!time.of_effective) {
    canvas.text(x + bar_width / 2, chart.bottom() - 4, "not known", {9, false, "#8b929c", Anchor::middle});
    return;
  }
  const double height = chart.height_of(*time.of_effective * chart.most_s);
  canvas.rect({x, chart.bottom() - height, bar_width, height}, "#3b74b9",
              fmt::format("{}: busy for {} of the time", name, percent_text(*time.of_effective)));
  canvas.text(x + bar_width / 2, chart.bottom() - height - 4, percent_text(*time.of_effective), centred);
}

void draw_units(SvgCanvas& canvas, const Chart& chart, const LoopFigures& figures) {
  if (figures.busy_class.evidence.empty()) {
    canvas.paragraph(axis_x + 10, chart.top + 30, account_x - axis_x - 60,
                     "Busy times are not known: no calibration of this machine. Run 'crosstalk calibrate'.", faint, 3);
    return;
  }
  double x = axis_x + 14;
  for (const Unit unit : models::all_units) {
    if (figures.busy[unit].exists) {
      draw_unit(canvas, chart, x, unit, figures.busy[unit]);
      x += bar_step;
    }
  }
}

/// Draws why a unit's bar is missing; only the first reason, since the others are mostly the same.
void draw_reason(SvgCanvas& canvas, const Chart& chart, const LoopFigures& figures) {
  for (const Unit unit : models::all_units) {
    if (figures.busy[unit].exists && !figures.busy[unit].of_effective && !figures.reasons[unit].empty()) {
      const double x = account_x + account_width + 18;
      canvas.paragraph(x, chart.top + 20, page_width - margin - x,
                       fmt::format("{} not known: {}", models::unit_in_words(unit), figures.reasons[unit]), faint, 3);
      return;
    }
  }
}

std::string loop_title(const LoopRow& loop) {
  const std::string place = source_text(loop.file, loop.line_begin, loop.line_end);
  return place_text(loop.function, {}, 0) + (place.empty() ? "" : " · " + place);
}

void draw_loop(SvgCanvas& canvas, double top, const LoopRow& loop) {
  const LoopFigures& figures = *loop.figures;
  canvas.text(margin, top, loop_title(loop), heading, 84);
  canvas.text(page_width - margin, top, percent_text(loop.share) + " of the CPU time",
              {10.5, false, "#5d6570", Anchor::end});
  if (figures.busy_class.which) {
    canvas.text(page_width - margin, top + 14, class_in_words(*figures.busy_class.which),
                {10.5, true, "#1d2229", Anchor::end});
  }
  const Chart chart{top + 14, figures.waits.total()};
  draw_axis(canvas, chart, account_x + account_width + 10);
  draw_units(canvas, chart, figures);
  draw_account(canvas, chart, account_x, account_width, figures.waits);
  name_parts(canvas, chart, account_x + account_width + 18, figures.waits);
  draw_reason(canvas, chart, figures);
}

/// True if most of a loop's time is its own; inner loops have charts themselves.
bool works_itself(const LoopRow& loop) { return loop.self_s >= 0.3 * loop.cpu_s; }

std::vector<const LoopRow*> loops_to_draw(const Analysis& analysis) {
  std::vector<const LoopRow*> loops;
  for (const LoopRow& loop : analysis.loops) {
    if (loop.figures && loop.share >= hot && works_itself(loop) && loop.figures->waits.total() > 0 &&
        loops.size() < most_loops) {
      loops.push_back(&loop);
    }
  }
  return loops;
}

std::vector<const ThreadSummary*> threads_to_draw(const Analysis& analysis) {
  std::vector<const ThreadSummary*> threads;
  for (const ThreadSummary& thread : analysis.threads) {
    if (thread.waits && thread.listed && thread.samples > 0) {
      threads.push_back(&thread);
    }
  }
  return threads;
}

void draw_threads(SvgCanvas& canvas, double top, const Analysis& analysis,
                  const std::vector<const ThreadSummary*>& threads) {
  const std::size_t shown = std::min(threads.size(), most_threads);
  canvas.text(margin, top, "Threads", heading);
  canvas.text(margin + 56, top,
              shown < threads.size()
                  ? fmt::format("where their elapsed time went; {} more are not drawn", threads.size() - shown)
                  : std::string("where their elapsed time went"),
              faint);
  Chart chart{top + 14, 0};
  for (std::size_t i = 0; i < shown; ++i) {
    chart.most_s = std::max(chart.most_s, threads[i]->waits->total());
  }
  draw_axis(canvas, chart, page_width - margin);
  const double step = std::min(96.0, (page_width - margin - axis_x - 14) / static_cast<double>(shown));
  for (std::size_t i = 0; i < shown; ++i) {
    const double x = axis_x + 14 + step * static_cast<double>(i);
    const double width = std::min(account_width, 0.7 * step);
    draw_account(canvas, chart, x, width, *threads[i]->waits);
    canvas.text(x + width / 2, chart.bottom() + 13, thread_label(analysis, threads[i]->index), centred,
                std::max(2, static_cast<int>(step / 5.6)));
  }
}

/// Draws the legend of the parts that any chart shows.
double draw_legend(SvgCanvas& canvas, double y, const std::vector<const LoopRow*>& loops,
                   const std::vector<const ThreadSummary*>& threads) {
  const auto occurs = [&](models::CycleClass which) {
    const auto has = [which](const models::CycleAccount& account) { return account[which].value_or(0) > 0; };
    return std::any_of(loops.begin(), loops.end(), [&](const auto* loop) { return has(loop->figures->waits); }) ||
           std::any_of(threads.begin(), threads.end(), [&](const auto* thread) { return has(*thread->waits); });
  };
  constexpr double step = 150;
  double x = margin;
  for (const WaitPart& part : wait_parts) {
    if (!occurs(part.which)) {
      continue;
    }
    if (x + step > page_width - margin + 1) {
      x = margin;
      y += 16;
    }
    canvas.rect({x, y - 9, 10, 10}, part.fill, part.words);
    canvas.text(x + 15, y, part.words, plain);
    x += step;
  }
  return y + 26;
}

double draw_page_head(SvgCanvas& canvas, const Analysis& analysis) {
  canvas.text(margin, 44, analysis.session.command, {15, true}, 84);
  canvas.text(
      margin, 62,
      fmt::format("{} elapsed, {} thread{}, {} CPU time", seconds_text(analysis.duration_s), analysis.threads.size(),
                  analysis.threads.size() == 1 ? "" : "s", seconds_text(analysis.cpu_s)),
      faint);
  return canvas.paragraph(
      margin, 84, page_width - 2 * margin,
      "Left of each chart: how long each unit of the machine was busy with the loop's work, at its effective peak; a "
      "unit "
      "that is busy for nearly all of the loop's time limits it. Right: what the loop's CPU time went into.",
      plain, 3);
}

}  // namespace

std::string render_busy_svg(const Analysis& analysis) {
  SvgCanvas canvas(page_width);
  const auto loops = loops_to_draw(analysis);
  const auto threads = threads_to_draw(analysis);
  double y = draw_page_head(canvas, analysis) + 8;
  y = draw_legend(canvas, y, loops, threads) + 6;
  for (const LoopRow* loop : loops) {
    draw_loop(canvas, y, *loop);
    y += chart_step;
  }
  if (loops.empty()) {
    y = canvas.paragraph(margin, y, page_width - 2 * margin, "No loop takes 3 % of the CPU time.", plain, 1) + 14;
  }
  if (!threads.empty()) {
    draw_threads(canvas, y, analysis, threads);
    y += chart_step;
  }
  return canvas.take(std::max(y, page_height), analysis.session.command);
}

}  // namespace crosstalk::driver
