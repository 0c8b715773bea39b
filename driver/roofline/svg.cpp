// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "driver/roofline/axes.h"
#include "driver/roofline/report.h"
#include "driver/svg/canvas.h"
#include "driver/text/report.h"
#include "driver/words/roofline_words.h"

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
    for (const double rate : steps(axes_.y_low, axes_.y_high)) {
      canvas_.line(left, y(rate), right, y(rate), "#e3e6ea");
      canvas_.text(left - 8, y(rate) + 5, rate_in_words(rate, "flop/s"), axis_font);
    }
    for (const double intensity : steps(axes_.x_low, axes_.x_high)) {
      canvas_.line(x(intensity), top, x(intensity), bottom, "#e3e6ea");
      canvas_.text(x(intensity), bottom + 20, intensity_in_words(intensity), axis_middle);
    }
    canvas_.text((left + right) / 2, bottom + 40, "flop/B", axis_middle);
    canvas_.line(left, bottom, right, bottom, "#4a515b");
    canvas_.line(left, top, left, bottom, "#4a515b");
  }

  /// Draws a bandwidth roof up to the compute roof, with its label along it. Labels of near roofs do not overlap.
  void draw_bandwidth(const models::roofline::Roof& roof, double compute) {
    const double height = roof.height.value();
    const double from = std::max(least_x(), least_y() / height);
    const double to = std::min(greatest_x(), compute / height);
    if (from >= to) {
      return;
    }
    canvas_.line(x(from), y(height * from), x(to), y(height * to), "#1d2229");
    const std::string words = fmt::format("{} {}", roof.name, rate_in_words(height, "B/s"));
    const double slope = std::atan2(y(1) - y(10), x(10) - x(1));  // of one decade by one, on the page
    const double length = 8.5 * static_cast<double>(words.size());
    double along = 16;
    const auto at = [&](double distance, double aside) {
      return std::pair(x(from) + distance * std::cos(slope) - aside * std::sin(slope),
                       y(height * from) - distance * std::sin(slope) - aside * std::cos(slope));
    };
    const auto across = [&] { return x(from) * std::sin(slope) + y(height * from) * std::cos(slope); };
    const auto start = [&] { return x(from) * std::cos(slope) - y(height * from) * std::sin(slope) + along; };
    while (std::any_of(labels_.begin(), labels_.end(), [&](const Label& other) {
      return std::abs(other.across - across()) < 17 && start() < other.end && other.begin < start() + length;
    })) {
      along += 10;
    }
    labels_.push_back({start(), start() + length, across()});
    const auto [label_x, label_y] = at(along, 6);
    canvas_.text_along(label_x, label_y, slope * 180 / M_PI, words, label);
  }
  void draw_compute(const models::roofline::Roof& roof, double first_ridge) {
    const double at = y(roof.height.value());
    canvas_.line(x(std::max(first_ridge, least_x())), at, right, at, "#1d2229");
    canvas_.text(right, at - 8, fmt::format("{} {}", roof.name, rate_in_words(roof.height.value(), "flop/s")),
                 {15, false, "#1d2229", Anchor::end});
  }

  /// An empty circle, and a line from it to where the loop is now.
  void draw_former(const RooflineLoop& before, const RooflineLoop& after) {
    const double at_x = x(before.intensity.value());
    const double at_y = y(before.performance.value());
    canvas_.line(at_x, at_y, x(after.intensity.value()), y(after.performance.value()), "#8b929c");
    canvas_.circle(at_x, at_y, 6, "#ffffff", "before");
  }
  void draw_point(const RooflineLoop& loop, std::size_t number, double part) {
    const double radius = 7 + 14 * std::sqrt(std::clamp(part, 0.0, 1.0));
    const double at_x = x(loop.intensity.value());
    const double at_y = y(loop.performance.value());
    canvas_.line(at_x, y(loop.performance.low()), at_x, y(loop.performance.high()), "#1d2229");
    canvas_.line(x(loop.intensity.low()), at_y, x(loop.intensity.high()), at_y, "#1d2229");
    canvas_.circle(at_x, at_y, radius, "#c9d6e8", verdict_in_words(loop, RooflineModel::carm));
    numbers_.push_back({at_x, at_y + 5, radius, number});
  }
  /// Writes each number into its circle, or beside it where another number is.
  void draw_numbers() {
    std::vector<std::pair<double, double>> taken;
    for (const Number& each : numbers_) {
      double by = 0;
      const auto is_free = [&](double at_x, double at_y) {
        return std::none_of(taken.begin(), taken.end(), [&](const auto& other) {
          return std::abs(other.first - at_x) < 20 && std::abs(other.second - at_y) < 15;
        });
      };
      while (!is_free(each.x + by, each.y)) {
        by = by == 0 ? each.radius + 12 : by + 20;
      }
      taken.emplace_back(each.x + by, each.y);
      canvas_.text(each.x + by, each.y, std::to_string(each.number), {14, true, "#1d2229", Anchor::middle});
    }
  }

 private:
  /// On the page, turned by the roofs' slope.
  struct Label {
    double begin, end, across;
  };
  struct Number {
    double x, y, radius;
    std::size_t number;
  };
  /// 1, 2 and 5 times powers of ten between two logarithms; powers alone where there are many.
  static std::vector<double> steps(double low, double high) {
    std::vector<double> values;
    for (int decade = static_cast<int>(std::floor(low)); decade <= high; ++decade) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double value = factor * std::pow(10, decade);
        const bool shown = factor == 1 || high - low < 2.5;
        if (shown && std::log10(value) >= low && std::log10(value) <= high) {
          values.push_back(value);
        }
      }
    }
    return values;
  }
  SvgCanvas& canvas_;
  const RooflineAxes& axes_;
  std::vector<Label> labels_;
  std::vector<Number> numbers_;
};

void draw_plot(SvgCanvas& canvas, const RooflineReport& report) {
  const auto& loops = report.roofline.loops;
  const RooflineAxes axes = axes_of(report);
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
  for (std::size_t i = std::min(loops.size(), most_points); i-- > 0;) {
    if (const RooflineLoop* before = former(report, loops[i])) {
      plot.draw_former(*before, loops[i]);
    }
    plot.draw_point(loops[i], i + 1, report.share_of(loops[i].loop->self_s));
  }
  plot.draw_numbers();
}

double draw_legend(SvgCanvas& canvas, const RooflineReport& report, double y) {
  const auto& loops = report.roofline.loops;
  for (std::size_t i = 0; i < std::min(loops.size(), most_in_legend); ++i) {
    const LoopRow& loop = *loops[i].loop;
    canvas.text(24, y, fmt::format("{}  {}", i + 1, loop_place(loop)), {15, true}, 74);
    y += 19;
    canvas.text(44, y,
                fmt::format("{} of the time, {}, {}; gain at most {}", percent_text(report.share_of(loop.self_s)),
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
