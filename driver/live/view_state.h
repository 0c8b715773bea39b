// SPDX-License-Identifier: Apache-2.0
// The state of the view: the picture, and the user's choices in it. Takes keys and pictures; draws nothing, reads no
// file, knows no terminal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/live/rows.h"
#include "driver/live/snapshot.h"

namespace crosstalk::driver::live {

enum class Key : std::uint8_t {
  character,
  up,
  down,
  left,
  right,
  page_up,
  page_down,
  home,
  end,
  tab,
  back_tab,
  enter,
  escape,
  backspace,
};

struct KeyPress {
  Key key = Key::character;
  char32_t character = 0;  // of Key::character
};

/// The part of the screen in which the arrows move.
enum class Focus : std::uint8_t { table, matrix };

enum class PageKind : std::uint8_t { tables, source, finding, warnings, help };

/// A level of the drill: Escape leads back to the one before.
struct Page {
  PageKind kind = PageKind::tables;
  // Of tables:
  Scope scope;
  Table table = Table::objects;
  Focus focus = Focus::table;
  std::array<std::string, table_count> chosen;  // key of the chosen row, by table; empty: the first
  std::array<Sort, table_count> sorts{};
  std::optional<std::pair<std::uint32_t, std::uint32_t>> cell;  // of the matrix: the chosen one
  // Of the others:
  PlaceRow place;         // of source
  FindingRow finding;     // of finding
  std::size_t first = 0;  // the first line that is shown; of source: the chosen line, from 1 on
};

/// The text typed at the bottom line.
enum class Prompt : std::uint8_t { none, filter, thread };

class ViewState {
 public:
  using ReadSource = std::function<std::optional<std::vector<std::string>>(const std::string& file)>;
  /// `read_source` returns the lines of a source file.
  explicit ViewState(ReadSource read_source);

  /// Takes the next picture. While paused it is kept for later.
  void take(Snapshot snapshot);
  /// No further picture will come. `why`: a sentence; empty: the processes have ended.
  void end(std::string why);
  void press(const KeyPress& press);

  [[nodiscard]] const std::optional<Snapshot>& snapshot() const { return snapshot_; }
  [[nodiscard]] const Page& page() const { return pages_.back(); }
  [[nodiscard]] std::size_t depth() const { return pages_.size(); }
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] const std::string& why_ended() const { return why_ended_; }
  [[nodiscard]] bool over() const { return over_; }  // the user is done
  [[nodiscard]] const std::string& filter() const { return filter_; }
  [[nodiscard]] Prompt prompt() const { return prompt_; }
  /// Ends a prompt that cannot be shown.
  void leave_prompt() { prompt_ = Prompt::none; }
  [[nodiscard]] const std::string& typed() const { return typed_; }
  /// A remark on the last key; empty: none.
  [[nodiscard]] const std::string& remark() const { return remark_; }

  /// The rows of the page's table.
  [[nodiscard]] std::vector<Row> rows() const;
  [[nodiscard]] Sort sort() const { return page().sorts[static_cast<std::size_t>(page().table)]; }
  /// The index of the chosen row among `rows`.
  [[nodiscard]] std::size_t chosen(const std::vector<Row>& rows) const;
  /// The chosen cell of the matrix; nullopt: it has none.
  [[nodiscard]] std::optional<std::pair<std::uint32_t, std::uint32_t>> cell() const;
  /// The text of the page's source file; nullopt: it is not here.
  [[nodiscard]] const std::optional<std::vector<std::string>>& source() const { return source_; }
  /// The number of lines that the page has to scroll through, as the latest drawing found it.
  void set_lines(std::size_t lines) { lines_ = lines; }
  /// The rows or lines that fit on the screen, as the latest drawing found it.
  void set_room(std::size_t room) { room_ = room; }

 private:
  [[nodiscard]] Page& present() { return pages_.back(); }
  void press_in_prompt(const KeyPress& press);
  void press_character(char32_t character);
  void move(const KeyPress& press);
  void move_row(std::ptrdiff_t by);
  void move_cell(std::ptrdiff_t rows, std::ptrdiff_t columns);
  void scroll(std::ptrdiff_t by);
  void show_table(std::size_t table);
  void next_sort();
  void filter_by_thread();
  void drill();
  void drill_row(const Row& row);
  void open(Page page);
  void open_source(const PlaceRow& place);
  void back();
  void pause();
  void follow();

  ReadSource read_source_;
  std::optional<Snapshot> snapshot_, waiting_;
  std::vector<Page> pages_;
  std::string filter_, typed_, remark_, why_ended_;
  Prompt prompt_ = Prompt::none;
  bool paused_ = false, ended_ = false, over_ = false;
  std::optional<std::vector<std::string>> source_;
  std::size_t lines_ = 0, room_ = 10;
};

}  // namespace crosstalk::driver::live
