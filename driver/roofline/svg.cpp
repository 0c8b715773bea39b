// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "driver/roofline/labels.h"
#include "driver/roofline/picture.h"
#include "driver/roofline/report.h"
#include "driver/svg/canvas.h"
#include "driver/terminal/layout.h"
#include "driver/text/report.h"
#include "driver/words/roofline_words.h"

namespace crosstalk::driver {
namespace {

using attribution::RooflineLoop;
using attribution::RooflinePlace;
using Font = SvgCanvas::Font;
using Anchor = SvgCanvas::Anchor;
using Stroke = SvgCanvas::Stroke;
using Shape = PictureCurve::Shape;
using Weight = PictureCurve::Weight;

// 80 mm wide the page is shrunk to half of its size: 16 units, 12 points, are 6 points then.
constexpr double page_width = 600, left = 104, right = 588, top = 84, bottom = 444;
constexpr std::size_t most_points = 30, most_in_legend = 10;
constexpr std::size_t most_with_levels = 6;  // points that are labelled with their level
constexpr double label_size = 16, small_size = 15;
const Font small{small_size, false, "#3c434d"};
const Font axis_font{small_size, false, "#3c434d", Anchor::end};
const Font axis_middle{small_size, false, "#3c434d", Anchor::middle};
const Font number_font{label_size, true, "#1d2229", Anchor::middle};
const Font apart_font{label_size, true, "#1d2229", Anchor::middle, true};  // a number outside of its circle

Stroke stroke_of(Weight weight) {
  return weight == Weight::roof      ? Stroke{"#1d2229", 2, ""}
         : weight == Weight::ceiling ? Stroke{"#4a515b", 1.5, "7 4"}
                                     : Stroke{"#9aa2ad", 1, "2 4"};
}
Font font_of(Weight weight) {
  return {label_size, false, weight == Weight::other ? "#6b7480" : "#1d2229", Anchor::start, true};
}
constexpr double gap = 8;  // between two labels on one line

class Plot {
 public:
  Plot(SvgCanvas& canvas, const RooflineReport& report, Picture picture)
      : canvas_(canvas), report_(report), picture_(std::move(picture)) {}

  void draw() {
    draw_shade();
    draw_grid();
    draw_brackets();
    for (const PictureCurve& curve : picture_.curves) {
      draw_curve(curve);
    }
    take_points();
    if (report_.chosen) {
      canvas_.line(vertical_x(), top, vertical_x(), bottom, Stroke{"#1d2229", 1, "2 3"});
    }
    draw_points();
    if (report_.chosen) {
      draw_crossings();
    }
    for (const PictureCurve& curve : picture_.curves) {
      label(curve);
    }
  }

 private:
  using Spot = std::pair<double, double>;
  [[nodiscard]] double x(double value) const { return left + picture_.axes.x(value) * (right - left); }
  [[nodiscard]] double y(double value) const { return bottom - picture_.axes.y(value) * (bottom - top); }
  [[nodiscard]] double clamped_y(double value) const { return std::clamp(y(std::max(value, 1e-300)), top, bottom); }
  [[nodiscard]] double clamped_x(double value) const { return std::clamp(x(std::max(value, 1e-300)), left, right); }
  [[nodiscard]] AxisWords words() const { return axis_words(report_.model(), report_.roofline.options.ops); }

  void draw_shade() {
    if (picture_.shaded) {
      const double from = clamped_x(picture_.shaded->first), to = clamped_x(picture_.shaded->second);
      canvas_.rect({from, top, std::max(0.0, to - from), bottom - top}, "#f0f2f5", "the mixed region");
    }
  }

  void draw_grid() {
    const PictureAxes& axes = picture_.axes;
    for (const double value :
         axes.y_linear ? even_steps(axes.greatest_y()) : decade_steps(axes.least_y(), axes.greatest_y())) {
      canvas_.line(left, y(value), right, y(value), "#e3e6ea");
      canvas_.text(left - 8, y(value) + 5, height_in_words(value, words().y_unit), axis_font);
    }
    for (const double value : decade_steps(axes.least_x(), axes.greatest_x())) {
      canvas_.line(x(value), top, x(value), bottom, "#e3e6ea");
      canvas_.text(x(value), bottom + 20, intensity_in_words(value), axis_middle);
    }
    canvas_.text((left + right) / 2, bottom + 41, words().x, axis_middle);
    canvas_.line(left, bottom, right, bottom, "#4a515b");
    canvas_.line(left, top, left, bottom, "#4a515b");
  }

  /// The two intensities of gathers, and the range that an order of rows and columns may change.
  void draw_brackets() {
    const RooflinePlace& place = report_.place(report_.roofline.loops.front());
    if (place.gathers) {
      const double from = clamped_x(place.gathers->worst), to = clamped_x(place.gathers->best);
      canvas_.rect({from, top, std::max(0.0, to - from), bottom - top}, "#f3f1e7",
                   "gathered elements from memory (left) to a cache (right)");
      for (const double at : {from, to}) {
        canvas_.line(at, top, at, bottom, Stroke{"#6b7480", 1, "3 3"});
      }
    }
    if (place.band) {
      const double at = x(place.points.front().x.value());
      const double high = clamped_y(place.band->band.best.value());
      canvas_.rect({at - 14, high, 28, std::max(0.0, clamped_y(place.band->band.worst.value()) - high)}, "#dfe3e8",
                   "the range of orders of rows and columns");
    }
  }

  void draw_curve(const PictureCurve& curve) {
    if (curve.shape == Shape::hill) {
      std::vector<Spot> spots;
      std::transform(curve.hill.begin(), curve.hill.end(), std::back_inserter(spots), [&](const Spot& at) {
        return Spot{x(at.first), clamped_y(at.second)};
      });
      canvas_.curve(spots, stroke_of(curve.weight));
      return;
    }
    const auto from = curve.at(curve.begin), to = curve.at(curve.end);
    if (from && to) {
      canvas_.line(x(curve.begin), y(*from), x(curve.end), y(*to), stroke_of(curve.weight));
      if (curve.weight != Weight::other) {
        places_.add_line(x(curve.begin), y(*from), x(curve.end), y(*to));
      }
    }
  }

  /// Writes name and value where no line crosses them, else the name, else beside the curve, else where only texts are
  /// in the way.
  void label(const PictureCurve& curve) {
    const bool hill = curve.shape == Shape::hill;
    const std::string brief = curve.name + (curve.value.empty() || hill ? "" : " " + curve.value);
    const std::string words = brief + curve.spread;
    const bool other = curve.weight == Weight::other;
    if (label_as(curve, words, true) || label_as(curve, brief, true) || (!other && label_beside(curve, words)) ||
        label_as(curve, curve.name, true)) {
      return;
    }
    if (!other && !label_as(curve, words, false)) {
      label_as(curve, curve.name, false);
    }
  }

  /// Writes the words to the right of the curve, with a line to it; false: there is no place.
  bool label_beside(const PictureCurve& curve, const std::string& words) {
    const double width = label_width(static_cast<std::size_t>(display_width(words)), label_size) + gap;
    for (double away = 24; away < 300; away += 17) {
      for (double part = 0.04; part < 0.95; part += 0.04) {
        const double value = std::pow(10, std::log10(curve.begin) + part * std::log10(curve.end / curve.begin));
        const double from_x = x(value), from_y = clamped_y(curve.at(value).value_or(0));
        const LabelBox box{from_x + away, from_y + 0.3 * label_size, width, label_size, 0};
        if (places_.is_clear(box) && places_.is_free(from_x, from_y, box.x - 3, from_y)) {
          places_.take(box);
          places_.add_line(from_x, from_y, box.x - 3, from_y);
          canvas_.line(from_x, from_y, box.x - 3, from_y, Stroke{"#6b7480", 0.8, ""});
          canvas_.circle(from_x, from_y, 2, "#1d2229");
          canvas_.text(box.x, box.y, words, font_of(curve.weight));
          return true;
        }
      }
    }
    return false;
  }

  /// Writes the words at the first free place along the curve; false: there is none.
  bool label_as(const PictureCurve& curve, const std::string& words, bool clear) {
    const double width = label_width(static_cast<std::size_t>(display_width(words)), label_size) + gap;
    for (const LabelBox& box : curve.shape == Shape::slanted ? along_slope(curve, width) : along_level(curve, width)) {
      if (clear ? places_.is_clear(box) : places_.is_free(box)) {
        places_.take(box);
        canvas_.text_along(box.x, box.y, box.degrees, words, font_of(curve.weight));
        return true;
      }
    }
    return false;
  }

  /// Candidates above the line from its lower end on, then below it.
  [[nodiscard]] std::vector<LabelBox> along_slope(const PictureCurve& curve, double width) const {
    const double slope = std::atan2(y(1) - y(10), x(10) - x(1));  // of one decade by one, on the page
    const double from_x = x(curve.begin), from_y = y(curve.height * curve.begin);
    const double length = std::hypot(x(curve.end) - from_x, y(curve.height * curve.end) - from_y);
    std::vector<LabelBox> boxes;
    for (const double aside : {6.0, -6.0 - 0.8 * label_size}) {
      for (double along = 10; along + width <= length; along += 9) {
        boxes.push_back({from_x + along * std::cos(slope) - aside * std::sin(slope),
                         from_y - along * std::sin(slope) - aside * std::cos(slope), width, label_size,
                         slope * 180 / M_PI});
      }
    }
    return boxes;
  }

  /// Candidates above the curve from its right end on, then below it.
  [[nodiscard]] std::vector<LabelBox> along_level(const PictureCurve& curve, double width) const {
    std::vector<LabelBox> boxes;
    for (const double aside : {6.0, -6.0 - 0.8 * label_size}) {
      for (double at = x(curve.end) - width - 4; at + width >= x(curve.begin) + 24; at -= 10) {
        // A hill is not level, so the text clears the higher of its ends.
        double level = bottom;
        for (const double part : {0.0, 0.5, 1.0}) {
          const double value = std::pow(10, picture_.axes.x_low + (at + part * width - left) / (right - left) *
                                                                      (picture_.axes.x_high - picture_.axes.x_low));
          const double there = y(std::max(curve.at(value).value_or(curve.height), 1e-300));
          level = part == 0 ? there : aside > 0 ? std::min(level, there) : std::max(level, there);
        }
        boxes.push_back({at, level - aside, width, label_size, 0});
      }
    }
    if (curve.shape == Shape::hill) {  // they lie apart from each other at their left ends
      std::reverse(boxes.begin(), boxes.begin() + static_cast<std::ptrdiff_t>(boxes.size() / 2));
      std::reverse(boxes.begin() + static_cast<std::ptrdiff_t>(boxes.size() / 2), boxes.end());
    }
    return boxes;
  }

  struct Dot {
    double x, y, radius;
    std::size_t number;
    const attribution::RooflinePoint* point;
    std::string levels;  // of several points at one place
  };

  /// Reserves the places of points, so that no label covers them.
  void take_points() {
    const auto& loops = report_.roofline.loops;
    for (std::size_t i = 0; i < std::min(loops.size(), most_points); ++i) {
      const RooflinePlace& place = report_.place(loops[i]);
      const double part = std::clamp(report_.share_of(loops[i].work.own_s), 0.0, 1.0);
      const double radius = (place.points.size() > 1 ? 6 : 7) + 13 * std::sqrt(part);
      for (const auto& point : place.points) {
        add_dot({clamped_x(point.x.value()), clamped_y(point.y.value()), radius, i, &point,
                 place.points.size() > 1 && point.level && loops.size() <= most_with_levels
                     ? models::roofline::level_in_words(*point.level)
                     : ""});
      }
    }
  }
  /// Points of one loop at one place are one dot.
  void add_dot(Dot dot) {
    for (Dot& other : dots_) {
      if (other.number == dot.number && std::abs(other.x - dot.x) < 3) {
        other.levels += (dot.levels.empty() ? "" : ", ") + dot.levels;
        return;
      }
    }
    dots_.push_back(std::move(dot));
  }

  void draw_points() {
    for (const Dot& dot : dots_) {
      draw_former(dot);
    }
    for (const Dot& dot : dots_) {
      draw_bars(dot);
    }
    for (const Dot& dot : dots_) {  // the largest first, so that none hides a smaller one
      const RooflineLoop& loop = report_.roofline.loops[dot.number];
      canvas_.circle(dot.x, dot.y, dot.radius, "#c9d6e8",
                     loop_place(report_, loop) + "\n" + verdict_in_words(loop, report_.model()));
    }
    for (const Dot& dot : dots_) {
      draw_number(dot);
    }
    for (const Dot& dot : dots_) {
      places_.take({dot.x - dot.radius, dot.y + dot.radius * 0.7, 2 * dot.radius, 2 * dot.radius / 1.02, 0});
    }
  }

  /// The interval of a point, and a line that joins the points of one loop.
  void draw_bars(const Dot& dot) {
    const RooflinePlace& place = report_.place(report_.roofline.loops[dot.number]);
    const auto* const point = dot.point;
    const Stroke bar{"#1d2229", 1, ""};
    canvas_.line(dot.x, clamped_y(point->y.low()), dot.x, clamped_y(point->y.high()), bar);
    canvas_.line(clamped_x(point->x.low()), dot.y, clamped_x(point->x.high()), dot.y, bar);
    if (point == &place.points.front() && place.points.size() > 1) {
      std::vector<Spot> spots;
      for (const auto& one : place.points) {
        spots.emplace_back(clamped_x(one.x.value()), clamped_y(one.y.value()));
      }
      canvas_.curve(spots, Stroke{"#7b8ba3", 1.5, ""});
    }
  }

  /// An empty circle, and a line from it to where the loop is now.
  void draw_former(const Dot& dot) {
    const RooflineLoop& loop = report_.roofline.loops[dot.number];
    const RooflineLoop* const before = former(report_, loop);
    if (before == nullptr || drawn_former_ == static_cast<int>(dot.number)) {
      return;
    }
    drawn_former_ = static_cast<int>(dot.number);
    const auto& was = report_.place(*before).points.front();
    const auto& now = report_.place(loop).points.front();
    canvas_.line(clamped_x(was.x.value()), clamped_y(was.y.value()), clamped_x(now.x.value()), clamped_y(now.y.value()),
                 Stroke{"#6b7480", 1.5, "4 3"});
    canvas_.circle(clamped_x(was.x.value()), clamped_y(was.y.value()), 6, "#ffffff", "before");
  }

  /// Writes the number into the circle, or near it with a line to it where another text is: at best where no curve is
  /// in the way (care 2), else where its line crosses no text (1), else anywhere (0).
  void draw_number(const Dot& dot) {
    const std::string words = std::to_string(dot.number + 1) + (dot.levels.empty() ? "" : " " + dot.levels);
    const double width = label_width(words.size(), label_size) + (dot.levels.empty() ? 0 : gap);
    const auto box_at = [&](double at_x, double at_y) {
      return LabelBox{at_x - width / 2, at_y + 0.3 * label_size, width, label_size, 0};
    };
    if (width <= 2.4 * dot.radius && places_.is_free(box_at(dot.x, dot.y))) {
      places_.take(box_at(dot.x, dot.y));
      canvas_.text(dot.x, dot.y + 0.3 * label_size, words, number_font);
      return;
    }
    for (const int care : {2, 1, 0}) {
      for (double away = dot.radius + 10 + width / 4; away < (care == 2 ? 60 : 260); away += 11) {
        for (int turn = 0; turn < 12; ++turn) {
          const double angle = M_PI / 6 * turn + M_PI / 12;
          const Spot at = {dot.x + away * std::cos(angle), dot.y - away * std::sin(angle)};
          const LabelBox box = box_at(at.first, at.second);
          const bool is_free = care == 2 ? places_.is_clear(box) : places_.is_free(box);
          const bool line_free = care == 0 || places_.is_free(dot.x, dot.y, at.first, at.second);
          if (is_free && line_free && clear_of_dots(at.first, at.second, width)) {
            write_apart(dot, angle, away, box, words);
            return;
          }
        }
      }
    }
  }
  void write_apart(const Dot& dot, double angle, double away, const LabelBox& box, const std::string& words) {
    const double until = away - 0.6 * label_size;
    canvas_.line(dot.x + dot.radius * std::cos(angle), dot.y - dot.radius * std::sin(angle),
                 dot.x + until * std::cos(angle), dot.y - until * std::sin(angle), Stroke{"#6b7480", 0.8, ""});
    places_.take(box);
    canvas_.text(box.x + box.width / 2, box.y, words, apart_font);
  }
  [[nodiscard]] bool clear_of_dots(double at_x, double at_y, double width) const {
    return std::none_of(dots_.begin(), dots_.end(), [&](const Dot& dot) {
      return std::abs(dot.x - at_x) < dot.radius + width / 2 && std::abs(dot.y - at_y) < dot.radius + label_size / 2;
    });
  }
  [[nodiscard]] double vertical_x() const {
    return clamped_x(report_.place(report_.roofline.loops.front()).points.front().x.value());
  }

  /// The heights at which the vertical through the first loop meets roofs.
  void draw_crossings() {
    const double at = report_.place(report_.roofline.loops.front()).points.front().x.value();
    for (const PictureCurve& curve : picture_.curves) {
      const auto height = curve.weight == Weight::other ? std::nullopt : curve.at(at);
      if (!height || *height < picture_.axes.least_y() || *height > picture_.axes.greatest_y()) {
        continue;
      }
      canvas_.circle(vertical_x(), y(*height), 3, "#1d2229", curve.name);
      const std::string words = height_in_words(*height, this->words().y_unit);
      write_crossing(vertical_x(), y(*height), words);
    }
  }
  /// Beside the vertical, where no line crosses it if there is such a place.
  void write_crossing(double at_x, double at_y, const std::string& words) {
    const double width = label_width(words.size(), small_size);
    for (const bool clear : {true, false}) {
      for (const double down : {16.0, -5.0, 26.0, 36.0}) {
        for (const double aside : {8.0, -8.0 - width}) {
          const LabelBox box{at_x + aside, at_y + down, width, small_size, 0};
          if (clear ? places_.is_clear(box) : places_.is_free(box)) {
            places_.take(box);
            canvas_.text(box.x, box.y, words, {small_size, false, "#3c434d", Anchor::start, true});
            return;
          }
        }
      }
    }
  }

  SvgCanvas& canvas_;
  const RooflineReport& report_;
  const Picture picture_;
  LabelPlaces places_{left, top - 14, right + 6, bottom};
  std::vector<Dot> dots_;
  int drawn_former_ = -1;
};

double draw_legend(SvgCanvas& canvas, const RooflineReport& report, double y) {
  const auto& loops = report.roofline.loops;
  const char* const unit = axis_words(report.model(), report.roofline.options.ops).y_unit;
  for (std::size_t i = 0; i < std::min(loops.size(), most_in_legend); ++i) {
    const RooflineLoop& loop = loops[i];
    canvas.text(16, y, fmt::format("{}  {}", i + 1, loop_place(report, loop)), {label_size, true}, 62);
    y += 20;
    y = canvas.paragraph(36, y, page_width - 48,
                         fmt::format("{} of the time, {}, gain {}; {}", percent_text(report.share_of(loop.work.own_s)),
                                     height_in_words(report.place(loop).points.front().y.value(), unit),
                                     gain_in_words(loop, report.model()), bound_in_words(loop, report.model())),
                         small, 2);
    y += 5;
  }
  if (loops.size() > most_in_legend) {
    canvas.text(16, y, fmt::format("and {} more", loops.size() - most_in_legend), small);
    y += 20;
  }
  return y;
}

std::string subtitle(const RooflineReport& report) {
  const RooflineLoop& first = report.roofline.loops.front();
  return std::string(model_title(report.model())) + "; roofs of " + roofs_of_whom(first);
}

}  // namespace

std::string render_roofline_svg(const RooflineReport& report) {
  SvgCanvas canvas(page_width);
  canvas.text(16, 26, report.analysis->session.command, {18, true}, 47);
  double y = bottom + 74;
  if (report.roofline.loops.empty()) {
    y = canvas.paragraph(
        16, 90, page_width - 32,
        "No loop has a place" +
            (report.roofline.unplaced.empty() ? std::string(".") : ": " + report.roofline.unplaced.front().why + "."),
        {label_size}, 3);
  } else {
    canvas.text(16, 47, subtitle(report), small, 70);
    canvas.text(16, 66, report.machine->identity.name, small, 70);
    Plot(canvas, report, picture_of(report, most_points)).draw();
    y = draw_legend(canvas, report, y);
  }
  return canvas.take(y + 4, report.analysis->session.command);
}

}  // namespace crosstalk::driver
