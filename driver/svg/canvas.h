// SPDX-License-Identifier: Apache-2.0
// A page of SVG: rectangles, lines and text. Coordinates are in page units, 96 to the inch; y grows downwards.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

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
    bool halo = false;  // white around the letters, for texts over lines
  };

  struct Stroke {
    const char* color = "#1d2229";
    double width = 1;
    const char* dashes = "";  // lengths of strokes and gaps, as SVG writes them; empty: none
  };

  /// `title`: the tooltip; empty: none.
  void rect(const Box& box, const char* fill, std::string_view title = {});
  void line(double x1, double y1, double x2, double y2, const char* color);
  /// The same, exact to 0.00001 of a unit: readers may measure it.
  void line(double x1, double y1, double x2, double y2, const Stroke& stroke);
  void curve(std::span<const std::pair<double, double>> points, const Stroke& stroke);
  /// Filled, with a dark edge. `title`: as above.
  void circle(double x, double y, double radius, const char* fill, std::string_view title = {});
  /// Draws one line, cut in its middle to `columns` characters of about half the font's size each. Replaces control
  /// characters and malformed UTF-8, because names come from programs.
  void text(double x, double y, std::string_view words, const Font& font, int columns = 400);
  /// Draws one line of text that begins there and rises by `degrees`.
  void text_along(double x, double y, double degrees, std::string_view words, const Font& font);
  /// Draws lines broken between words; returns the y behind the last line.
  double paragraph(double x, double y, double width, std::string_view words, const Font& font, int most_lines);

  /// Returns the document, `height` units high.
  [[nodiscard]] std::string take(double height, std::string_view title);

 private:
  double width_;
  std::string body_;
};

}  // namespace crosstalk::driver
