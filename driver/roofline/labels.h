// SPDX-License-Identifier: Apache-2.0
// Places for the labels of a picture, so that no two overlap. Pure.
#pragma once

#include <cstddef>
#include <vector>

namespace crosstalk::driver {

/// The box of a text that begins at (x, y), the left end of its base line, and rises by `degrees`; page units, y
/// downwards.
struct LabelBox {
  double x = 0, y = 0, width = 0, size = 0;  // size: the font's
  double degrees = 0;
};
/// The width of a text on average.
[[nodiscard]] double label_width(std::size_t characters, double size);
[[nodiscard]] bool overlap(const LabelBox& a, const LabelBox& b);

/// True if the segment from (x1, y1) to (x2, y2) meets the box.
[[nodiscard]] bool crosses(const LabelBox& box, double x1, double y1, double x2, double y2);

class LabelPlaces {
 public:
  /// Nothing may be outside of this.
  LabelPlaces(double left, double top, double right, double bottom)
      : left_(left), top_(top), right_(right), bottom_(bottom) {}
  /// True if the box lies inside and meets none that is taken.
  [[nodiscard]] bool is_free(const LabelBox& box) const;
  /// True if the segment meets no taken box.
  [[nodiscard]] bool is_free(double x1, double y1, double x2, double y2) const;
  void take(const LabelBox& box) { taken_.push_back(box); }
  void add_line(double x1, double y1, double x2, double y2) { lines_.push_back({x1, y1, x2, y2}); }
  /// True if the box is free, and no added line crosses it.
  [[nodiscard]] bool is_clear(const LabelBox& box) const;

 private:
  double left_, top_, right_, bottom_;
  struct Line {
    double x1, y1, x2, y2;
  };
  std::vector<LabelBox> taken_;
  std::vector<Line> lines_;
};

}  // namespace crosstalk::driver
