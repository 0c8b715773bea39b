// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "driver/roofline/axes.h"
#include "driver/roofline/report.h"
#include "driver/roofline/words.h"
#include "driver/svg/canvas.h"
#include "driver/text/report.h"

namespace crosstalk::driver {
namespace {

using attribution::LoopRow;
using attribution::RooflineLoop;
using Font = SvgCanvas::Font;
using Anchor = SvgCanvas::Anchor;

// 80 mm wide the page is shrunk to 0.44 of its size: 16 units are 7 points then.
constexpr double page_width = 680, left = 108, right = 660, top = 70, bottom = 430;
constexpr std::size_t most_points = 30, most_in_legend = 10;
const Font label{15};
const Font small{14, false, "#4a515b"};
const Font axis_font{14, false, "#4a515b", Anchor::end};
const Font axis_middle{14, false, "#4a515b", Anchor::middle};

class Plot {
 public:
  Plot(SvgCanvas& canvas, const RooflineAxes& axes) : canvas_(canvas), axes_(axes) {}
  [[nodiscard]] double x(double intensity) const { return left + axes_.x(intensity) * (right - left); }
  [[nodiscard]] double y(double rate) const { return bottom - axes_.y(rate) * (bottom - top); }
  [[nodiscard]] double least_x() const { return std::pow(10, axes_.x_low); }
  [[nodiscard]] double greatest_x() const { return std::pow(10, axes_.x_high); }
  [[nodiscard]] double least_y() const { return std::pow(10, axes_.y_low); }

  void draw_grid() {
    for (int decade = static_cast<int>(std::ceil(axes_.y_low)); decade <= axes_.y_high; ++decade) {
      const double at = y(std::pow(10, decade));
      canvas_.line(left, at, right, at, "#e3e6ea");
      canvas_.text(left - 8, at + 5, rate_in_words(std::pow(10, decade), "flop/s"), axis_font);
    }
    for (int decade = static_cast<int>(std::ceil(axes_.x_low)); decade <= axes_.x_high; ++decade) {
      const double at = x(std::pow(10, decade));
      canvas_.line(at, top, at, bottom, "#e3e6ea");
      canvas_.text(at, bottom + 20, intensity_in_words(std::pow(10, decade)), axis_middle);
    }
    canvas_.text((left + right) / 2, bottom + 40, "flop/B", axis_middle);
    canvas_.line(left, bottom, right, bottom, "#4a515b");
    canvas_.line(left, top, left, bottom, "#4a515b");
  }

  /// A line of a bandwidth roof up to the compute roof. Its label stands where it enters the picture, above it.
  void draw_bandwidth(const models::roofline::Roof& roof, double compute) {
    const double height = roof.height.value();
    const double from = std::max(least_x(), least_y() / height);
    const double to = std::min(greatest_x(), compute / height);
    if (from < to) {
      canvas_.line(x(from), y(height * from), x(to), y(height * to), "#1d2229");
      labels_.push_back(
          {x(from) + 6, y(height * from) - 8, fmt::format("{} {}", roof.name, rate_in_words(height, "B/s"))});
    }
  }
  void draw_compute(const models::roofline::Roof& roof, double first_ridge) {
    const double at = y(roof.height.value());
    canvas_.line(x(std::max(first_ridge, least_x())), at, right, at, "#1d2229");
    canvas_.text(right, at - 8, fmt::format("{} {}", roof.name, rate_in_words(roof.height.value(), "flop/s")),
                 {15, false, "#1d2229", Anchor::end});
  }
  /// Labels that would overlap move down, and stay beside their lines.
  void draw_labels() {
    constexpr double step = 17;
    std::sort(labels_.begin(), labels_.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
    double last = top - step;
    for (Label& each : labels_) {
      each.y = std::max(each.y, last + step);
      last = each.y;
      canvas_.text(each.x, each.y, each.words, label);
    }
  }

  void draw_point(const RooflineLoop& loop, std::size_t number, double part) {
    const double radius = 7 + 14 * std::sqrt(std::clamp(part, 0.0, 1.0));
    const double at_x = x(loop.intensity.value());
    const double at_y = y(loop.performance.value());
    canvas_.line(at_x, y(loop.performance.low()), at_x, y(loop.performance.high()), "#1d2229");
    canvas_.line(x(loop.intensity.low()), at_y, x(loop.intensity.high()), at_y, "#1d2229");
    canvas_.circle(at_x, at_y, radius, "#c9d6e8", verdict_in_words(loop, RooflineModel::carm));
    canvas_.text(at_x, at_y + 5, std::to_string(number), {14, true, "#1d2229", Anchor::middle});
  }

 private:
  struct Label {
    double x, y;
    std::string words;
  };
  SvgCanvas& canvas_;
  const RooflineAxes& axes_;
  std::vector<Label> labels_;
};

void draw_plot(SvgCanvas& canvas, const RooflineReport& report) {
  const auto& loops = report.roofline.loops;
  const RooflineAxes axes = axes_of(report.roofline);
  Plot plot(canvas, axes);
  plot.draw_grid();
  const RooflineLoop& first = loops.front();
  const double compute = first.compute.height.value();
  double first_ridge = INFINITY;
  for (const auto& roof : first.bandwidths) {
    plot.draw_bandwidth(roof, compute);
    first_ridge = std::min(first_ridge, compute / roof.height.value());
  }
  plot.draw_compute(first.compute, first_ridge);
  plot.draw_labels();
  for (std::size_t i = std::min(loops.size(), most_points); i-- > 0;) {
    plot.draw_point(loops[i], i + 1, loops[i].loop->self_s / std::max(report.analysis->cpu_s, 1e-12));
  }
}

double draw_legend(SvgCanvas& canvas, const RooflineReport& report, double y) {
  const auto& loops = report.roofline.loops;
  for (std::size_t i = 0; i < std::min(loops.size(), most_in_legend); ++i) {
    const LoopRow& loop = *loops[i].loop;
    const std::string place = source_text(loop.file, loop.line_begin, loop.line_end);
    canvas.text(24, y, fmt::format("{}  {} {}", i + 1, loop.function, place), {15, true}, 74);
    y += 19;
    canvas.text(44, y,
                fmt::format("{} of the time, {}, {}; gain at most {}",
                            percent_text(loop.self_s / std::max(report.analysis->cpu_s, 1e-12)),
                            rate_in_words(loops[i].performance.value(), "flop/s"),
                            bound_in_words(loops[i], report.model), gain_in_words(loops[i], report.model)),
                small, 90);
    y += 24;
  }
  return y;
}

}  // namespace

std::string render_roofline_svg(const RooflineReport& report) {
  SvgCanvas canvas(page_width);
  canvas.text(24, 30, report.analysis->session.command, {18, true}, 66);
  canvas.text(24, 52, report.machine->identity.name + ", one thread", small, 88);
  double y = bottom + 76;
  if (report.roofline.loops.empty()) {
    y = canvas.paragraph(24, 90, page_width - 48,
                         "No loop has a place: none does floating-point operations at a known rate.", label, 3);
  } else {
    draw_plot(canvas, report);
    y = draw_legend(canvas, report, y);
  }
  return canvas.take(y + 12, report.analysis->session.command);
}

}  // namespace crosstalk::driver
