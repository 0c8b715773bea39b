// SPDX-License-Identifier: Apache-2.0
#include "driver/live/screen.h"

#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

// ncurses comes last: its macros have everyday names.
#define NCURSES_NOMACROS 1
#include <ncurses.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace crosstalk::driver::live {
namespace {

constexpr int escape_delay_ms = 25;  // after which an escape is the key, not the begin of another key's code
constexpr int many_colors = 256;

// xterm's colours, dull to vivid: on a dark screen the strongest are the brightest, on a light one the most colourful.
constexpr short blues[heat_levels] = {60, 61, 68, 33, 39};
constexpr short oranges[heat_levels] = {95, 131, 173, 208, 202};
constexpr int dark_levels = 2;  // that have white text
constexpr short black = 16, white = 231, blue_text = 33, orange_text = 208;

/// The number of the pair of colours of an ink; 0: the terminal's own.
short pair_of(Ink ink) { return ink >= Ink::warning ? static_cast<short>(ink) : static_cast<short>(0); }

void make_pairs() {
  ::start_color();
  ::use_default_colors();
  constexpr short terminals_own = -1;
  const bool many = COLORS >= many_colors;
  ::init_pair(pair_of(Ink::true_sharing), many ? blue_text : COLOR_CYAN, terminals_own);
  ::init_pair(pair_of(Ink::false_sharing), many ? orange_text : COLOR_YELLOW, terminals_own);
  ::init_pair(pair_of(Ink::warning), many ? orange_text : COLOR_YELLOW, terminals_own);
  for (int level = 1; many && level <= heat_levels; ++level) {
    const short text = level <= dark_levels ? white : black;
    ::init_pair(pair_of(heat_ink(level, false)), text, blues[level - 1]);
    ::init_pair(pair_of(heat_ink(level, true)), text, oranges[level - 1]);
  }
}

attr_t attributes_of(Ink ink) {
  switch (ink) {
    case Ink::strong:
    case Ink::title:
      return A_BOLD;
    case Ink::faint:
      return A_DIM;
    case Ink::bar:
      return A_REVERSE | A_BOLD;
    case Ink::chosen:
      return A_REVERSE;
    default:
      return A_NORMAL;
  }
}

/// The characters of a cell; a cell holds at most that many marks.
std::vector<wchar_t> wide(const std::string& glyph) {
  std::vector<wchar_t> characters;
  for (std::size_t i = 0; i < glyph.size() && characters.size() + 1 < CCHARW_MAX;) {
    const auto first = static_cast<unsigned char>(glyph[i]);
    const std::size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    char32_t value = first & (bytes == 1 ? 0x7fU : 0xffU >> (bytes + 1));
    for (std::size_t byte = 1; byte < bytes && i + byte < glyph.size(); ++byte) {
      value = (value << 6U) | (static_cast<unsigned char>(glyph[i + byte]) & 0x3fU);
    }
    characters.push_back(static_cast<wchar_t>(value));
    i += bytes;
  }
  characters.push_back(L'\0');
  return characters;
}

/// Lets ncurses write the characters of this set.
void set_locale(Charset charset) {
  if (charset == Charset::ascii) {
    std::setlocale(LC_CTYPE, "C");
  } else if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
}

std::optional<KeyPress> key_of(wint_t code) {
  switch (code) {
    case KEY_UP:
      return KeyPress{Key::up};
    case KEY_DOWN:
      return KeyPress{Key::down};
    case KEY_LEFT:
      return KeyPress{Key::left};
    case KEY_RIGHT:
      return KeyPress{Key::right};
    case KEY_PPAGE:
      return KeyPress{Key::page_up};
    case KEY_NPAGE:
      return KeyPress{Key::page_down};
    case KEY_HOME:
      return KeyPress{Key::home};
    case KEY_END:
      return KeyPress{Key::end};
    case KEY_BTAB:
      return KeyPress{Key::back_tab};
    case KEY_ENTER:
      return KeyPress{Key::enter};
    case KEY_BACKSPACE:
      return KeyPress{Key::backspace};
    default:
      return std::nullopt;
  }
}

std::optional<KeyPress> key_of_character(wint_t character) {
  constexpr wint_t escape = 27, erase = 127, backspace = 8;
  switch (character) {
    case L'\t':
      return KeyPress{Key::tab};
    case L'\r':
    case L'\n':
      return KeyPress{Key::enter};
    case escape:
      return KeyPress{Key::escape};
    case erase:
    case backspace:
      return KeyPress{Key::backspace};
    default:
      return character >= L' ' ? std::optional(KeyPress{Key::character, static_cast<char32_t>(character)})
                               : std::nullopt;
  }
}

}  // namespace

struct Screen::Terminal {
  Terminal() = default;
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    if (screen != nullptr) {
      ::endwin();
      ::delscreen(screen);
    }
    if (opened != nullptr) {
      std::fclose(opened);
    }
  }
  SCREEN* screen = nullptr;
  std::FILE* opened = nullptr;  // /dev/tty
  std::FILE* input = nullptr;
  Charset charset = Charset::utf8;
  bool color = false;
};

Screen::Screen(std::unique_ptr<Terminal> terminal) : terminal_(std::move(terminal)) {}
Screen::Screen(Screen&&) noexcept = default;
Screen::~Screen() = default;

Result<Screen> Screen::open(Charset charset, bool color) {
  auto terminal = std::make_unique<Terminal>();
  terminal->charset = charset;
  set_locale(charset);
  if (::isatty(STDIN_FILENO) != 1) {
    terminal->opened = std::fopen("/dev/tty", "re");
    if (terminal->opened == nullptr) {
      return fail(ErrorCode::unsupported, "there is no terminal to read keys from");
    }
  }
  terminal->input = terminal->opened != nullptr ? terminal->opened : stdin;
  ::set_escdelay(escape_delay_ms);
  terminal->screen = ::newterm(nullptr, stdout, terminal->input);
  if (terminal->screen == nullptr) {
    const char* const name = std::getenv("TERM");
    return fail(ErrorCode::unsupported, std::string("the terminal '") + (name != nullptr ? name : "") +
                                            "' is not known here; set TERM to one that is, like xterm");
  }
  ::cbreak();
  ::noecho();
  ::nonl();
  ::curs_set(0);
  ::keypad(stdscr, true);
  ::nodelay(stdscr, true);
  terminal->color = color && ::has_colors();
  if (terminal->color) {
    make_pairs();
  }
  return Screen(std::move(terminal));
}

int Screen::rows() const { return LINES; }
int Screen::columns() const { return COLS; }
bool Screen::has_shades() const { return terminal_->color && COLORS >= many_colors; }
Charset Screen::charset() const { return terminal_->charset; }
int Screen::fd() const { return ::fileno(terminal_->input); }

std::optional<KeyPress> Screen::key() {
  wint_t code = 0;
  const int kind = ::wget_wch(stdscr, &code);
  return kind == ERR ? std::nullopt : kind == KEY_CODE_YES ? key_of(code) : key_of_character(code);
}

void Screen::show(const CellBuffer& cells) {
  for (int row = 0; row < cells.rows(); ++row) {
    for (int column = 0; column < cells.columns(); ++column) {
      const Cell& cell = cells.at(row, column);
      if (cell.glyph.empty()) {
        continue;  // under the wide character before
      }
      cchar_t character{};
      const short pair = terminal_->color ? pair_of(cell.ink) : static_cast<short>(0);
      ::setcchar(&character, wide(cell.glyph).data(), attributes_of(cell.ink), pair, nullptr);
      ::mvwadd_wch(stdscr, row, column, &character);
    }
  }
  ::wrefresh(stdscr);
}

void Screen::resize() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
    ::resizeterm(size.ws_row, size.ws_col);
  }
  ::werase(stdscr);
}

void Screen::take_again() {
  ::reset_prog_mode();
  ::clearok(curscr, true);
  resize();
}

void Screen::stop_process() {
  ::def_prog_mode();
  ::endwin();
  ::raise(SIGSTOP);
  take_again();
}

}  // namespace crosstalk::driver::live
