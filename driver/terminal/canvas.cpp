// SPDX-License-Identifier: Apache-2.0
#include "driver/terminal/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace crosstalk::driver {

namespace {

// xterm's 256 colours, pale to strong; black text is legible on the first four.
constexpr std::array<int, heat_levels> blues = {189, 153, 117, 75, 27};
constexpr std::array<int, heat_levels> oranges = {230, 223, 216, 209, 166};
constexpr int black = 16;
constexpr int white = 231;
constexpr const char* reset = "\x1b[0m";

const char* escape_of(Hue hue) {
  switch (hue) {
    case Hue::strong:
      return "\x1b[1m";
    case Hue::faint:
      return "\x1b[2m";
    case Hue::true_sharing:
      return "\x1b[38;5;33m";
    case Hue::false_sharing:
      return "\x1b[38;5;208m";
    case Hue::plain:
      break;
  }
  return "";
}

}  // namespace

int heat_level(double value, double greatest) {
  if (!(value > 0) || !(greatest > 0)) {
    return 0;
  }
  constexpr std::array<double, heat_levels - 1> steps = {0.02, 0.10, 0.25, 0.50};
  const auto above = std::count_if(steps.begin(), steps.end(), [&](double s) { return value > s * greatest; });
  return static_cast<int>(above) + 1;
}

std::string Canvas::colored(const std::string& text, Hue hue) const {
  return style_.color && hue != Hue::plain ? escape_of(hue) + text + reset : text;
}

std::string Canvas::heated(const std::string& text, int level, Hue hue) const {
  if (!style_.color || level <= 0) {
    return text;
  }
  const auto step = static_cast<std::size_t>(std::min(level, heat_levels)) - 1;
  const int background = hue == Hue::false_sharing ? oranges[step] : blues[step];
  return fmt::format("\x1b[48;5;{};38;5;{}m{}{}", background, level >= heat_levels ? white : black, text, reset);
}

const char* Canvas::shade(int level) const {
  static constexpr std::array<const char*, heat_levels + 1> fine = {" ", "·", "░", "▒", "▓", "█"};
  static constexpr std::array<const char*, heat_levels + 1> plain = {" ", ".", "-", "+", "*", "#"};
  const auto index = static_cast<std::size_t>(std::clamp(level, 0, heat_levels));
  return style_.charset == Charset::utf8 ? fine[index] : plain[index];
}

std::string Canvas::cell(std::string_view text, int columns) const {
  return pad_right(fit_middle(clean(text), columns, style_.charset), columns);
}

std::string Canvas::right_cell(std::string_view text, int columns) const {
  return pad_left(fit_end(clean(text), columns, style_.charset), columns);
}

void Canvas::heading(const std::string& title, const std::string& note) {
  const int room = std::max(0, width() - display_width(title) - 2);
  const std::string shown = fit_end(note, room, style_.charset);
  blank();
  line(colored(title, Hue::strong) + (shown.empty() ? "" : "  " + colored(shown, Hue::faint)));
}

void Canvas::line(std::string_view text) {
  const std::size_t last = text.find_last_not_of(' ');
  text_.append(text.substr(0, last == std::string_view::npos ? 0 : last + 1));
  text_ += '\n';
}

void Canvas::paragraph(const std::string& mark, std::string_view sentence) {
  const int indent = display_width(mark);
  bool first = true;
  for (const std::string& part : wrapped(clean(sentence), std::max(10, width() - indent), style_.charset)) {
    line((first ? mark : std::string(static_cast<std::size_t>(indent), ' ')) + part);
    first = false;
  }
}

void draw_more(Canvas& canvas, std::uint64_t all, std::size_t shown, const char* what) {
  if (all > shown) {
    canvas.line(canvas.colored(fmt::format("  and {} more{}", all - shown, what), Hue::faint));
  }
}

}  // namespace crosstalk::driver
