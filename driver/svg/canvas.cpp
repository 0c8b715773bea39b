// SPDX-License-Identifier: Apache-2.0
#include "driver/svg/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "driver/terminal/layout.h"

namespace crosstalk::driver {
namespace {

constexpr double character = 0.54;     // width of one, of the font's size, on average
constexpr double line_spacing = 1.35;  // of the font's size

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : clean(text, Charset::utf8)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

const char* anchor_name(SvgCanvas::Anchor anchor) {
  switch (anchor) {
    case SvgCanvas::Anchor::start:
      break;
    case SvgCanvas::Anchor::middle:
      return "middle";
    case SvgCanvas::Anchor::end:
      return "end";
  }
  return "start";
}

/// Breaks text into lines of at most `columns`; a longer single word stays whole.
std::vector<std::string> broken(std::string_view words, int columns) {
  std::vector<std::string> lines(1);
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (!lines.back().empty() && display_width(lines.back()) + 1 + display_width(word) > columns) {
      lines.emplace_back();
    }
    lines.back().append(lines.back().empty() ? "" : " ").append(word);
  }
  return lines;
}

}  // namespace

void SvgCanvas::rect(const Box& box, const char* fill, std::string_view title) {
  body_ += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}")", box.x, box.y,
                       box.width, box.height, fill);
  body_ += title.empty() ? "/>\n" : "><title>" + escaped(title) + "</title></rect>\n";
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, const char* color) {
  body_ += fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}"/>)", x1, y1, x2, y2, color);
  body_ += '\n';
}

namespace {

std::string stroked(const SvgCanvas::Stroke& stroke) {
  std::string text = fmt::format(R"(stroke="{}" stroke-width="{:.1f}")", stroke.color, stroke.width);
  return *stroke.dashes == 0 ? text : text + fmt::format(R"( stroke-dasharray="{}")", stroke.dashes);
}

}  // namespace

void SvgCanvas::line(double x1, double y1, double x2, double y2, const Stroke& stroke) {
  body_ +=
      fmt::format(R"(<line x1="{:.5f}" y1="{:.5f}" x2="{:.5f}" y2="{:.5f}" {}/>)", x1, y1, x2, y2, stroked(stroke));
  body_ += '\n';
}

void SvgCanvas::curve(std::span<const std::pair<double, double>> points, const Stroke& stroke) {
  body_ += R"(<polyline fill="none" points=")";
  for (const auto& [x, y] : points) {
    body_ += fmt::format("{:.1f},{:.1f} ", x, y);
  }
  body_ += "\" " + stroked(stroke) + "/>\n";
}

void SvgCanvas::circle(double x, double y, double radius, const char* fill, std::string_view title) {
  body_ += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}" fill="{}" stroke="#1d2229")", x, y, radius, fill);
  body_ += title.empty() ? "/>\n" : "><title>" + escaped(title) + "</title></circle>\n";
}

namespace {

const char* weight_of(const SvgCanvas::Font& font) {
  constexpr const char* white = R"( paint-order="stroke" stroke="#ffffff" stroke-width="3")";
  constexpr const char* both = R"( font-weight="600" paint-order="stroke" stroke="#ffffff" stroke-width="3")";
  return font.halo ? (font.bold ? both : white) : font.bold ? R"( font-weight="600")" : "";
}

}  // namespace

void SvgCanvas::text(double x, double y, std::string_view words, const Font& font, int columns) {
  body_ += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" font-size="{:.1f}" fill="{}" text-anchor="{}"{}>{}</text>)", x, y,
                       font.size, font.color, anchor_name(font.anchor), weight_of(font),
                       escaped(fit_middle(clean(words, Charset::utf8), columns, Charset::utf8)));
  body_ += '\n';
}

void SvgCanvas::text_along(double x, double y, double degrees, std::string_view words, const Font& font) {
  body_ +=
      fmt::format(R"svg(<text x="{0:.1f}" y="{1:.1f}" font-size="{2:.1f}" fill="{3}" text-anchor="{4}"{7} )svg"
                  R"svg(transform="rotate({5:.2f} {0:.1f} {1:.1f})">{6}</text>)svg",
                  x, y, font.size, font.color, anchor_name(font.anchor), -degrees, escaped(words), weight_of(font));
  body_ += '\n';
}

double SvgCanvas::paragraph(double x, double y, double width, std::string_view words, const Font& font,
                            int most_lines) {
  const auto columns = std::max(8, static_cast<int>(width / (font.size * character)));
  std::vector<std::string> lines = broken(clean(words, Charset::utf8), columns);
  if (lines.size() > static_cast<std::size_t>(most_lines)) {
    lines.resize(static_cast<std::size_t>(most_lines));
    lines.back() = fit_end(lines.back() + " …", columns, Charset::utf8);
  }
  for (const std::string& each : lines) {
    text(x, y, each, font, columns + columns / 2);
    y += font.size * line_spacing;
  }
  return y;
}

std::string SvgCanvas::take(double height, std::string_view title) {
  std::string whole = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" )"
      R"(font-family="Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif">)",
      width_, height);
  whole += "\n<title>" + escaped(title) + "</title>\n";
  whole += fmt::format(R"(<rect width="{:.0f}" height="{:.0f}" fill="#ffffff"/>)", width_, height);
  whole += "\n" + std::exchange(body_, {}) + "</svg>\n";
  return whole;
}

}  // namespace crosstalk::driver
