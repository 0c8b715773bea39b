// SPDX-License-Identifier: Apache-2.0
// The terminal, by ncurses. It only puts cells and reads keys.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "driver/live/cell_buffer.h"
#include "driver/live/view_state.h"

namespace crosstalk::driver::live {

/// One at a time. The destructor restores the terminal.
class Screen {
 public:
  /// `color`: colours are wanted. Reads keys from standard input if that is a terminal, else from /dev/tty. Fails if
  /// the terminal is not known or cannot be drawn on.
  [[nodiscard]] static Result<Screen> open(Charset charset, bool color);
  Screen(Screen&&) noexcept;
  Screen& operator=(Screen&&) = delete;
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

  [[nodiscard]] int rows() const;
  [[nodiscard]] int columns() const;
  /// True if shades are colours.
  [[nodiscard]] bool has_shades() const;
  [[nodiscard]] Charset charset() const;
  /// Readable if key() may have one.
  [[nodiscard]] int fd() const;
  /// The next key that was pressed; nullopt: none, or one that means nothing here.
  [[nodiscard]] std::optional<KeyPress> key();
  void show(const CellBuffer& cells);

  /// Asks the terminal for its size.
  void resize();
  /// Gives the terminal back to the shell, stops this process, and takes the terminal again when it goes on.
  void stop_process();
  /// Draws everything anew: the terminal may have been another program's meanwhile.
  void take_again();

 private:
  struct Terminal;
  explicit Screen(std::unique_ptr<Terminal> terminal);
  std::unique_ptr<Terminal> terminal_;
};

}  // namespace crosstalk::driver::live
