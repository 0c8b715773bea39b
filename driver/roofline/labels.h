// SPDX-License-Identifier: Apache-2.0
// Places for the labels of a picture, so that no two overlap. Pure.
#pragma once

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

class LabelPlaces {
 public:
  /// Nothing may be outside of this.
  LabelPlaces(double left, double top, double right, double bottom)
      : left_(left), top_(top), right_(right), bottom_(bottom) {}
  /// True if the box lies inside and meets none that is taken.
  [[nodiscard]] bool is_free(const LabelBox& box) const;
  void take(const LabelBox& box) { taken_.push_back(box); }

 private:
  double left_, top_, right_, bottom_;
  std::vector<LabelBox> taken_;
};

}  // namespace crosstalk::driver
