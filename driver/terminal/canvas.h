// SPDX-License-Identifier: Apache-2.0
// The surface that a text report is drawn on: knows the width, the character set and the colours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "driver/terminal/layout.h"

namespace crosstalk::driver {

struct TextStyle {
  int width = 100;  // columns; no line is longer
  Charset charset = Charset::utf8;
  bool color = false;
};

enum class Hue { plain, strong, faint, true_sharing, false_sharing };

/// Intensity of a heat map cell: 0 none, 5 strongest.
inline constexpr int heat_levels = 5;
/// Returns the level of `value` among values up to `greatest`: steps at 2, 10, 25 and 50 % of it.
[[nodiscard]] int heat_level(double value, double greatest);

class Canvas {
 public:
  explicit Canvas(TextStyle style) : style_(style) {}

  [[nodiscard]] const TextStyle& style() const { return style_; }
  [[nodiscard]] int width() const { return style_.width; }
  [[nodiscard]] std::string take() { return std::move(text_); }

  // Pieces of a line. Pad and cut before colouring: escape codes have no width.
  [[nodiscard]] std::string colored(const std::string& text, Hue hue) const;
  /// Returns `text` on a background for `level`; without colours, `text` alone.
  [[nodiscard]] std::string heated(const std::string& text, int level, Hue hue) const;
  /// Returns one character for `level`, for output without colours.
  [[nodiscard]] const char* shade(int level) const;
  [[nodiscard]] std::string clean(std::string_view text) const { return driver::clean(text, style_.charset); }
  [[nodiscard]] std::string cell(std::string_view text, int columns) const;        // cut in the middle, left
  [[nodiscard]] std::string right_cell(std::string_view text, int columns) const;  // cut at the end, right
  /// Returns `utf8` if the character set has it, else `ascii`.
  [[nodiscard]] const char* sign(const char* utf8, const char* ascii) const {
    return style_.charset == Charset::utf8 ? utf8 : ascii;
  }

  // Whole lines.
  void heading(const std::string& title, const std::string& note = "");
  void line(std::string_view text);  // trailing spaces are dropped
  void blank() { text_ += '\n'; }
  /// Writes a sentence, broken between words; further lines are indented by the width of `mark`.
  void paragraph(const std::string& mark, std::string_view sentence);

 private:
  TextStyle style_;
  std::string text_;
};

/// Says how many of `all` rows are not shown, if any: "  and 3 more" with `what` behind it.
void draw_more(Canvas& canvas, std::uint64_t all, std::size_t shown, const char* what);

}  // namespace crosstalk::driver
