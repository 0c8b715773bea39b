// SPDX-License-Identifier: Apache-2.0
#include "driver/live/cell_buffer.h"

#include <algorithm>

namespace crosstalk::driver::live {
namespace {

/// The bytes of the first character of text that clean() has made well-formed.
std::size_t character_bytes(std::string_view text) {
  std::size_t bytes = 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xc0U) == 0x80U) {
    ++bytes;
  }
  return bytes;
}

std::string with_ink(const Canvas& canvas, const std::string& text, Ink ink) {
  const int number = static_cast<int>(ink);
  if (ink >= Ink::true_heat) {
    const bool is_false = ink >= Ink::false_heat;
    const int level = number - static_cast<int>(is_false ? Ink::false_heat : Ink::true_heat) + 1;
    return canvas.heated(text, level, is_false ? Hue::false_sharing : Hue::true_sharing);
  }
  switch (ink) {
    case Ink::strong:
    case Ink::bar:
    case Ink::title:
      return canvas.colored(text, Hue::strong);
    case Ink::faint:
      return canvas.colored(text, Hue::faint);
    case Ink::warning:
    case Ink::false_sharing:
      return canvas.colored(text, Hue::false_sharing);
    case Ink::true_sharing:
      return canvas.colored(text, Hue::true_sharing);
    default:
      return text;
  }
}

}  // namespace

CellBuffer::CellBuffer(int rows, int columns, Charset charset)
    : rows_(std::max(rows, 1)),
      columns_(std::max(columns, 1)),
      charset_(charset),
      cells_(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(columns_)) {}

const Cell& CellBuffer::at(int row, int column) const {
  return cells_[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(column)];
}

Cell& CellBuffer::cell(int row, int column) {
  return cells_[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(column)];
}

int CellBuffer::put(int row, int column, std::string_view text, Ink ink, int end) {
  const int limit = end < 0 ? columns_ : std::min(end, columns_);
  if (row < 0 || row >= rows_ || column < 0) {
    return column;
  }
  const std::string harmless = clean(text, charset_);
  for (std::string_view rest = harmless; !rest.empty();) {
    const std::string_view character = rest.substr(0, character_bytes(rest));
    rest.remove_prefix(character.size());
    const int width = display_width(character);
    if (width == 0 && column > 0 && column <= limit) {  // a mark on the character before
      Cell& before = cell(row, column - 1);
      before.glyph += before.glyph.empty() ? std::string_view() : character;
      continue;
    }
    if (width == 0 || column + width > limit) {
      break;
    }
    cell(row, column) = {std::string(character), ink};
    if (width == 2) {
      cell(row, column + 1) = {"", ink};
    }
    column += width;
  }
  return column;
}

int CellBuffer::put_left(int row, int column, std::string_view text, int width, Ink ink) {
  put(row, column, pad_right(fit_middle(clean(text, charset_), width, charset_), width), ink, column + width);
  return column + width;
}

int CellBuffer::put_right(int row, int column, std::string_view text, int width, Ink ink) {
  put(row, column, pad_left(fit_end(clean(text, charset_), width, charset_), width), ink, column + width);
  return column + width;
}

void CellBuffer::paint(int row, int column, int end, Ink ink) {
  for (int at = std::max(column, 0); row >= 0 && row < rows_ && at < std::min(end, columns_); ++at) {
    cell(row, at).ink = ink;
  }
}

std::string CellBuffer::text(bool color) const {
  const Canvas canvas({columns_, charset_, color});
  std::string all;
  for (int row = 0; row < rows_; ++row) {
    std::string line;
    std::size_t kept = 0;  // bytes up to the last cell that is to be seen
    for (int column = 0; column < columns_;) {
      const Ink ink = at(row, column).ink;
      std::string run;
      for (; column < columns_ && at(row, column).ink == ink; ++column) {
        run += at(row, column).glyph;
      }
      const bool shaded = color && ink >= Ink::true_heat;
      const std::size_t visible = shaded ? run.size() : run.find_last_not_of(' ') + 1;
      if (visible > 0 && visible < run.size()) {
        line += with_ink(canvas, run.substr(0, visible), ink);
        kept = line.size();
        line += run.substr(visible);
      } else {
        line += visible == 0 ? run : with_ink(canvas, run, ink);
        kept = visible == 0 ? kept : line.size();
      }
    }
    all += line.substr(0, kept) + "\n";
  }
  while (all.ends_with("\n\n")) {
    all.pop_back();
  }
  return all;
}

}  // namespace crosstalk::driver::live
