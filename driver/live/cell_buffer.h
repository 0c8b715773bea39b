// SPDX-License-Identifier: Apache-2.0
// A screen as cells of characters: what a picture is drawn into, and what a terminal or a text is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "driver/terminal/canvas.h"

namespace crosstalk::driver::live {

/// The meaning of a cell; the terminal chooses a look for it.
enum class Ink : std::uint8_t {
  plain,
  strong,
  faint,
  bar,     // the line at the top
  title,   // of a part
  chosen,  // by the user
  warning,
  true_sharing,
  false_sharing,
  true_heat,  // this and the next four: shades of true sharing, weakest first
  false_heat = true_heat + heat_levels,
  end = false_heat + heat_levels,
};
/// The shade for a level from 1 on.
[[nodiscard]] constexpr Ink heat_ink(int level, bool is_false) {
  return static_cast<Ink>(static_cast<int>(is_false ? Ink::false_heat : Ink::true_heat) + level - 1);
}

struct Cell {
  std::string glyph = " ";  // of one or two columns; empty: the second column of the one before
  Ink ink = Ink::plain;
  bool operator==(const Cell&) const = default;
};

class CellBuffer {
 public:
  CellBuffer(int rows, int columns, Charset charset);

  [[nodiscard]] int rows() const { return rows_; }
  [[nodiscard]] int columns() const { return columns_; }
  [[nodiscard]] Charset charset() const { return charset_; }
  [[nodiscard]] const Cell& at(int row, int column) const;

  /// Writes `text`, made harmless, as far as it fits before `end` (a column; -1: that of the buffer). Returns the
  /// column behind it. Nothing happens outside of the buffer.
  int put(int row, int column, std::string_view text, Ink ink = Ink::plain, int end = -1);
  /// Writes `text` in `width` columns: cut in its middle, left; or cut at its end, right.
  int put_left(int row, int column, std::string_view text, int width, Ink ink = Ink::plain);
  int put_right(int row, int column, std::string_view text, int width, Ink ink = Ink::plain);
  /// Gives the columns [column, end) of a row an ink.
  void paint(int row, int column, int end, Ink ink);
  /// Returns `utf8` if the character set has it, else `ascii`.
  [[nodiscard]] const char* sign(const char* utf8, const char* ascii) const {
    return charset_ == Charset::utf8 ? utf8 : ascii;
  }

  /// The rows without spaces at their ends; with colours as escape codes, if wanted. Drops empty rows at the end.
  [[nodiscard]] std::string text(bool color) const;

 private:
  [[nodiscard]] Cell& cell(int row, int column);
  int rows_, columns_;
  Charset charset_;
  std::vector<Cell> cells_;
};

}  // namespace crosstalk::driver::live
