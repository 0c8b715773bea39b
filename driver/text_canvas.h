// SPDX-License-Identifier: Apache-2.0
// Where the parts of a text report are drawn: it knows the width, the character set and the colours.
#pragma once

#include <string>
#include <string_view>

#include "driver/report_options.h"
#include "driver/text_layout.h"

namespace crosstalk::driver {

struct TextStyle {
  int width = 100;  // columns; no line is longer
  Charset charset = Charset::utf8;
  bool color = false;
};

enum class Hue { plain, strong, faint, true_sharing, false_sharing };

/// How strong a cell of a heat map is: 0 none, 5 strongest.
inline constexpr int heat_levels = 5;
/// The level of `value` among values up to `greatest`: steps at 2, 10, 25 and 50 % of it.
[[nodiscard]] int heat_level(double value, double greatest);

class Canvas {
 public:
  explicit Canvas(TextStyle style) : style_(style) {}

  [[nodiscard]] const TextStyle& style() const { return style_; }
  [[nodiscard]] int width() const { return style_.width; }
  [[nodiscard]] std::string take() { return std::move(text_); }

  // Pieces of a line. Pad and cut before colouring: escape codes have no width.
  [[nodiscard]] std::string colored(const std::string& text, Hue hue) const;
  /// `text` on a background that tells `level`; without colours `text` alone.
  [[nodiscard]] std::string heated(const std::string& text, int level, Hue hue) const;
  /// One character that tells `level` without colours.
  [[nodiscard]] const char* shade(int level) const;
  [[nodiscard]] std::string clean(std::string_view text) const { return driver::clean(text, style_.charset); }
  [[nodiscard]] std::string cell(std::string_view text, int columns) const;        // cut in the middle, left
  [[nodiscard]] std::string right_cell(std::string_view text, int columns) const;  // cut at the end, right
  /// `utf8` where the character set has it, else `ascii`.
  [[nodiscard]] const char* sign(const char* utf8, const char* ascii) const {
    return style_.charset == Charset::utf8 ? utf8 : ascii;
  }

  // Whole lines.
  void heading(const std::string& title, const std::string& note = "");
  void line(std::string_view text);  // trailing spaces are dropped
  void blank() { text_ += '\n'; }
  /// A sentence, broken between words; further lines are indented as far as `mark` is wide.
  void paragraph(const std::string& mark, std::string_view sentence);

 private:
  TextStyle style_;
  std::string text_;
};

}  // namespace crosstalk::driver
