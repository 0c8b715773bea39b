// SPDX-License-Identifier: Apache-2.0
#include "driver/roofline/labels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace crosstalk::driver {
namespace {

constexpr double character = 0.56;               // width of one, of the font's size, on average
constexpr double ascent = 0.80, descent = 0.22;  // of the font's size

using Point = std::pair<double, double>;
using Corners = std::array<Point, 4>;

Corners corners_of(const LabelBox& box) {
  const double angle = box.degrees * M_PI / 180;
  const double along_x = std::cos(angle), along_y = -std::sin(angle);  // of the base line
  const auto at = [&](double along, double up) {
    return Point{box.x + along * along_x + up * along_y, box.y + along * along_y - up * along_x};
  };
  const double top = ascent * box.size, bottom = -descent * box.size;
  return {at(0, bottom), at(box.width, bottom), at(box.width, top), at(0, top)};
}

/// True if a line across `axis` separates the two (separating axis theorem).
bool separated(const Corners& a, const Corners& b, Point axis) {
  const auto range = [&](const Corners& corners) {
    std::array<double, 4> along{};
    std::transform(corners.begin(), corners.end(), along.begin(),
                   [&](const Point& p) { return p.first * axis.first + p.second * axis.second; });
    return std::pair(*std::min_element(along.begin(), along.end()), *std::max_element(along.begin(), along.end()));
  };
  const auto [a_low, a_high] = range(a);
  const auto [b_low, b_high] = range(b);
  return a_high <= b_low || b_high <= a_low;
}

}  // namespace

double label_width(std::size_t characters, double size) { return character * size * static_cast<double>(characters); }

bool overlap(const LabelBox& a, const LabelBox& b) {
  const Corners of_a = corners_of(a), of_b = corners_of(b);
  for (const double degrees : {a.degrees, a.degrees + 90, b.degrees, b.degrees + 90}) {
    const double angle = degrees * M_PI / 180;
    if (separated(of_a, of_b, {std::cos(angle), -std::sin(angle)})) {
      return false;
    }
  }
  return true;
}

bool crosses(const LabelBox& box, double x1, double y1, double x2, double y2) {
  const Corners corners = corners_of(box);
  const Corners line = {Point{x1, y1}, Point{x2, y2}, Point{x2, y2}, Point{x1, y1}};
  const double angle = box.degrees * M_PI / 180;
  const std::array<Point, 3> axes = {Point{std::cos(angle), -std::sin(angle)}, Point{std::sin(angle), std::cos(angle)},
                                     Point{y2 - y1, x1 - x2}};
  return std::none_of(axes.begin(), axes.end(), [&](const Point& axis) { return separated(corners, line, axis); });
}

bool LabelPlaces::is_free(double x1, double y1, double x2, double y2) const {
  return std::none_of(taken_.begin(), taken_.end(),
                      [&](const LabelBox& other) { return crosses(other, x1, y1, x2, y2); });
}

bool LabelPlaces::is_clear(const LabelBox& box) const {
  return is_free(box) && std::none_of(lines_.begin(), lines_.end(), [&](const Line& line) {
           return crosses(box, line.x1, line.y1, line.x2, line.y2);
         });
}

bool LabelPlaces::is_free(const LabelBox& box) const {
  const Corners corners = corners_of(box);
  const bool inside = std::all_of(corners.begin(), corners.end(), [&](const Point& p) {
    return p.first >= left_ && p.first <= right_ && p.second >= top_ && p.second <= bottom_;
  });
  return inside &&
         std::none_of(taken_.begin(), taken_.end(), [&](const LabelBox& other) { return overlap(box, other); });
}

}  // namespace crosstalk::driver
