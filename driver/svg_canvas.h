// SPDX-License-Identifier: Apache-2.0
// A page of SVG: rectangles, lines and text. Places are in units of the page, 96 an inch; y grows downwards.
#pragma once

#include <string>
#include <string_view>

namespace crosstalk::driver {

class SvgCanvas {
 public:
  explicit SvgCanvas(double width) : width_(width) {}
  [[nodiscard]] double width() const { return width_; }

  struct Box {
    double x = 0, y = 0, width = 0, height = 0;
  };
  enum class Anchor { start, middle, end };
  struct Font {
    double size = 11;
    bool bold = false;
    const char* color = "#1d2229";
    Anchor anchor = Anchor::start;
  };

  /// `title`: what a viewer shows of it on hovering; empty: nothing.
  void rect(const Box& box, const char* fill, std::string_view title = {});
  void line(double x1, double y1, double x2, double y2, const char* color);
  /// Cut in its middle to `columns` characters, of about half the font's size each. Control characters and malformed
  /// UTF-8 are replaced: names come from programs.
  void text(double x, double y, std::string_view words, const Font& font, int columns = 400);
  /// Broken between words; returns the y of the line behind the last one.
  double paragraph(double x, double y, double width, std::string_view words, const Font& font, int most_lines);

  /// The document, of that height.
  [[nodiscard]] std::string take(double height, std::string_view title);

 private:
  double width_;
  std::string body_;
};

}  // namespace crosstalk::driver
