// SPDX-License-Identifier: Apache-2.0
#include "driver/roofline/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "driver/words/roofline_words.h"

namespace crosstalk::driver {
namespace {

using attribution::RooflineLoop;
using attribution::RooflineModel;
using attribution::RooflinePlace;
using models::roofline::Estimate;
using models::roofline::Roof;
using models::roofline::RoofKind;
using Shape = PictureCurve::Shape;
using Weight = PictureCurve::Weight;

constexpr double room = 0.35;        // decades beside what is shown
constexpr double label_room = 0.6;   // the same to the right, where horizontal roofs have their labels
constexpr double other_reach = 1.2;  // decades above the roofs in which others are shown
constexpr std::size_t hill_steps = 96;

std::string spread_of(const Estimate& height) {
  const double part = height.value() > 0 ? (height.high() - height.low()) / 2 / height.value() : 0;
  return part >= 0.005 ? fmt::format(" ±{:.0f} %", 100 * part) : "";
}

/// Collects what a picture must hold.
class Extent {
 public:
  void include(double x, double y) {
    if (x > 0 && std::isfinite(x) && y > 0 && std::isfinite(y)) {
      x_low_ = std::min(x_low_, x), x_high_ = std::max(x_high_, x);
      y_low_ = std::min(y_low_, y), y_high_ = std::max(y_high_, y);
    }
  }
  void include_y(double y) {
    if (y > 0 && std::isfinite(y)) {
      y_low_ = std::min(y_low_, y), y_high_ = std::max(y_high_, y);
    }
  }
  /// At most a decade below what is shown already.
  void include_below(double y) { include_y(std::max(y, y_low_ / 10)); }
  [[nodiscard]] double least_x() const { return x_low_; }
  [[nodiscard]] PictureAxes axes(bool linear) const {
    PictureAxes axes;
    axes.x_low = std::log10(x_low_) - room, axes.x_high = std::log10(x_high_) + (linear ? room : label_room);
    axes.y_linear = linear;
    axes.y_low = linear ? 0 : std::log10(y_low_) - room;
    axes.y_high = linear ? 1.15 * y_high_ : std::log10(y_high_) + room;
    return axes;
  }
  [[nodiscard]] double highest() const { return y_high_; }

 private:
  double x_low_ = INFINITY, x_high_ = 0, y_low_ = INFINITY, y_high_ = 0;
};

bool is_ceiling(const Roof& roof) { return roof.ceiling.has_value(); }

/// The highest roof of a kind, 0 if there is none.
double highest(const std::vector<Roof>& roofs, RoofKind kind) {
  double most = 0;
  for (const Roof& roof : roofs) {
    most = roof.kind == kind ? std::max(most, roof.height.value()) : most;
  }
  return most;
}

class Drawing {
 public:
  Drawing(const RooflineReport& report, std::size_t most)
      : report_(report), first_(report.place(report.roofline.loops.front())) {
    const auto& loops = report.roofline.loops;
    for (std::size_t i = 0; i < std::min(loops.size(), most); ++i) {
      include(loops[i]);
      if (const RooflineLoop* before = former(report, loops[i])) {
        include(*before);
      }
    }
    peak_ = highest(first_.roofs, RoofKind::compute);
    for (const Roof& roof : first_.roofs) {
      if (roof.kind == RoofKind::bandwidth) {
        extent_.include(peak_ / roof.height.value(), peak_);
      } else {
        extent_.include_y(roof.height.value());
      }
    }
    include_lowest();
    if (first_.hills) {
      include_hills();
    }
  }

  Picture take() {
    Picture picture;
    const bool linear = report_.model() == RooflineModel::mansard;
    const double top = extent_.highest();
    for (const Roof& roof : first_.machine) {
      if (roof.kind != RoofKind::bandwidth && roof.height.value() <= top * std::pow(10, other_reach)) {
        extent_.include_y(roof.height.value());
      }
    }
    picture.axes = extent_.axes(linear);
    for (const Roof& roof : first_.roofs) {
      picture.curves.push_back(curve_of(roof, picture.axes, is_ceiling(roof) ? Weight::ceiling : Weight::roof));
    }
    if (first_.hills) {
      add_hills(picture);
    }
    for (const Roof& roof : first_.machine) {
      if (!shown_already(roof)) {
        picture.curves.push_back(curve_of(roof, picture.axes, Weight::other));
      }
    }
    std::erase_if(picture.curves, [](const PictureCurve& curve) { return !(curve.begin < curve.end); });
    std::stable_sort(picture.curves.begin(), picture.curves.end(),
                     [](const PictureCurve& a, const PictureCurve& b) { return a.weight < b.weight; });
    return picture;
  }

 private:
  void include(const RooflineLoop& loop) {
    const RooflinePlace& place = report_.place(loop);
    for (const auto& point : place.points) {
      extent_.include(point.x.value(), point.y.value());
    }
    if (place.gathers) {
      extent_.include(place.gathers->worst, place.points.front().y.value());
      extent_.include(place.gathers->best, place.points.front().y.value());
    }
    if (place.band) {
      extent_.include_y(place.band->band.worst.value());
      extent_.include_y(place.band->band.best.value());
    }
  }
  /// The lowest slanted roof to the left of the points, where its label has room.
  void include_lowest() {
    double slowest = INFINITY;
    for (const Roof& roof : first_.roofs) {
      slowest = roof.kind == RoofKind::bandwidth ? std::min(slowest, roof.height.value()) : slowest;
    }
    extent_.include_below(slowest * extent_.least_x());
  }
  void include_hills() {
    extent_.include(first_.hills->near_ridge().value(), 1);
    extent_.include(2 * first_.hills->far_ridge().value(), 1);
  }

  [[nodiscard]] bool shown_already(const Roof& roof) const {
    constexpr double same = 0.02;
    return std::any_of(first_.roofs.begin(), first_.roofs.end(), [&](const Roof& shown) {
      return shown.kind == roof.kind && std::abs(shown.height.value() / roof.height.value() - 1) < same;
    });
  }

  /// A bandwidth ends at the highest compute roof, a compute roof begins at the highest bandwidth.
  [[nodiscard]] PictureCurve curve_of(const Roof& roof, const PictureAxes& axes, Weight weight) const {
    PictureCurve curve;
    curve.weight = weight;
    curve.name = roof.name;
    curve.height = roof.height.value();
    if (!roof.name.ends_with("RS")) {
      curve.value = roof_in_words(roof, report_.roofline.options.ops);
      curve.spread = spread_of(roof.height);
    }
    curve.begin = axes.least_x(), curve.end = axes.greatest_x();
    const double steepest = highest(first_.roofs, RoofKind::bandwidth);
    if (roof.kind == RoofKind::bandwidth) {
      curve.shape = Shape::slanted;
      curve.begin = std::max(curve.begin, axes.least_y() / curve.height);
      curve.end = std::min(curve.end, (weight == Weight::other ? axes.greatest_y() : peak_) / curve.height);
    } else if (roof.kind == RoofKind::compute && steepest > 0) {
      curve.begin = std::max(curve.begin, curve.height / steepest);
    }
    return curve;
  }

  void add_hills(Picture& picture) const {
    const models::roofline::Mansard& hills = *first_.hills;
    picture.shaded = {hills.near_ridge().value(), hills.far_ridge().value()};
    for (const auto& hill : hills.hills()) {
      PictureCurve curve;
      curve.shape = Shape::hill;
      curve.name = models::roofline::level_in_words(hill.level);
      curve.value = fmt::format("({:.2g} to {:.2g})", hill.memory_at_ridge.value(), hill.memory_most.value());
      curve.begin = picture.axes.least_x(), curve.end = picture.axes.greatest_x();
      for (std::size_t i = 0; i <= hill_steps; ++i) {
        const double part = static_cast<double>(i) / hill_steps;
        const double x = std::pow(10, picture.axes.x_low + part * (picture.axes.x_high - picture.axes.x_low));
        const auto at = Estimate::exact(x, {});
        const auto ipc = at ? hills.ipc(hill.level, *at) : at;
        if (ipc) {
          curve.hill.emplace_back(x, ipc->value());
        }
      }
      picture.curves.push_back(std::move(curve));
    }
  }

  const RooflineReport& report_;
  const RooflinePlace& first_;
  Extent extent_;
  double peak_ = 0;
};

}  // namespace

double PictureAxes::x(double value) const { return (std::log10(value) - x_low) / (x_high - x_low); }
double PictureAxes::y(double value) const {
  return ((y_linear ? value : std::log10(value)) - y_low) / (y_high - y_low);
}
double PictureAxes::least_x() const { return std::pow(10, x_low); }
double PictureAxes::greatest_x() const { return std::pow(10, x_high); }
double PictureAxes::least_y() const { return y_linear ? y_low : std::pow(10, y_low); }
double PictureAxes::greatest_y() const { return y_linear ? y_high : std::pow(10, y_high); }

std::optional<double> PictureCurve::at(double x) const {
  if (x < begin || x > end) {
    return std::nullopt;
  }
  if (shape != Shape::hill) {
    return shape == Shape::slanted ? height * x : height;
  }
  const auto after = std::find_if(hill.begin(), hill.end(), [x](const auto& point) { return point.first >= x; });
  return after == hill.end() ? std::nullopt : std::optional(after->second);
}

Picture picture_of(const RooflineReport& report, std::size_t most) { return Drawing(report, most).take(); }

std::vector<double> decade_steps(double least, double greatest) {
  std::vector<double> values;
  const bool many = std::log10(greatest / least) >= 2.5;
  for (int decade = static_cast<int>(std::floor(std::log10(least))); std::pow(10, decade) <= greatest; ++decade) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10, decade);
      if ((factor == 1 || !many) && value >= least && value <= greatest) {
        values.push_back(value);
      }
    }
  }
  return values;
}

std::vector<double> even_steps(double greatest) {
  const double step = greatest > 8 ? 2 : greatest > 2 ? 1 : greatest > 1 ? 0.5 : 0.2;
  std::vector<double> values;
  for (double value = 0; value <= greatest; value += step) {
    values.push_back(value);
  }
  return values;
}

}  // namespace crosstalk::driver
