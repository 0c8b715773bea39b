// SPDX-License-Identifier: Apache-2.0
#include "driver/live/view_state.h"

#include <algorithm>
#include <utility>

namespace crosstalk::driver::live {
namespace {

constexpr std::size_t most_typed = 60;
constexpr std::ptrdiff_t to_the_end = 1'000'000;

std::size_t moved(std::size_t at, std::ptrdiff_t by, std::size_t count) {
  const auto last = static_cast<std::ptrdiff_t>(count) - 1;
  return static_cast<std::size_t>(
      std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(at) + by, 0, std::max<std::ptrdiff_t>(last, 0)));
}

void append(std::string& text, char32_t c) {  // as UTF-8
  const auto byte = [&](char32_t value) { text += static_cast<char>(static_cast<unsigned char>(value)); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xc0U | (c >> 6U));
    byte(0x80U | (c & 0x3fU));
  } else if (c < 0x10000) {
    byte(0xe0U | (c >> 12U));
    byte(0x80U | ((c >> 6U) & 0x3fU));
    byte(0x80U | (c & 0x3fU));
  } else {
    byte(0xf0U | (c >> 18U));
    byte(0x80U | ((c >> 12U) & 0x3fU));
    byte(0x80U | ((c >> 6U) & 0x3fU));
    byte(0x80U | (c & 0x3fU));
  }
}

void remove_last(std::string& text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0U) == 0x80U) {
    text.pop_back();
  }
  if (!text.empty()) {
    text.pop_back();
  }
}

Page page_with(PageKind kind) {
  Page page;
  page.kind = kind;
  return page;
}

/// The key's way in lines or rows; 0: it does not move up or down.
std::ptrdiff_t vertical(Key key, std::size_t room) {
  const auto page = static_cast<std::ptrdiff_t>(std::max<std::size_t>(room, 2)) - 1;
  switch (key) {
    case Key::up:
      return -1;
    case Key::down:
      return 1;
    case Key::page_up:
      return -page;
    case Key::page_down:
      return page;
    case Key::home:
      return -to_the_end;
    case Key::end:
      return to_the_end;
    default:
      return 0;
  }
}

}  // namespace

ViewState::ViewState(ReadSource read_source) : read_source_(std::move(read_source)), pages_(1) {}

void ViewState::take(Snapshot snapshot) {
  if (paused_) {
    waiting_ = std::move(snapshot);
    return;
  }
  snapshot_ = std::move(snapshot);
  follow();
}

void ViewState::end(std::string why) {
  ended_ = true;
  why_ended_ = std::move(why);
}

/// A finding that is shown gets its new figures.
void ViewState::follow() {
  for (Page& page : pages_) {
    if (page.kind == PageKind::finding) {
      const auto same = std::ranges::find_if(snapshot_->findings, [&](const FindingRow& finding) {
        return finding.object == page.finding.object && finding.kind == page.finding.kind;
      });
      page.finding = same != snapshot_->findings.end() ? *same : page.finding;
    }
  }
}

void ViewState::pause() {
  paused_ = !paused_;
  if (!paused_ && waiting_) {
    take(*std::exchange(waiting_, std::nullopt));
  }
}

std::vector<Row> ViewState::rows() const {
  return snapshot_ ? rows_of(*snapshot_, page().table, page().scope, filter_, sort()) : std::vector<Row>();
}

std::size_t ViewState::chosen(const std::vector<Row>& rows) const {
  const std::string& key = page().chosen[static_cast<std::size_t>(page().table)];
  const auto found = std::ranges::find_if(rows, [&](const Row& row) { return row.key == key; });
  return found == rows.end() ? 0 : static_cast<std::size_t>(found - rows.begin());
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> ViewState::cell() const {
  const auto threads = snapshot_ ? matrix_threads(*snapshot_, page().scope) : std::vector<const ThreadRow*>();
  const auto has = [&](std::uint32_t index) {
    return std::ranges::any_of(threads, [&](const ThreadRow* thread) { return thread->index == index; });
  };
  if (threads.empty()) {
    return std::nullopt;
  }
  const std::uint32_t first = threads.front()->index;
  const auto chosen = page().cell.value_or(std::pair(first, first));
  return std::pair(has(chosen.first) ? chosen.first : first, has(chosen.second) ? chosen.second : first);
}

void ViewState::press(const KeyPress& press) {
  remark_.clear();
  if (prompt_ != Prompt::none) {
    press_in_prompt(press);
    return;
  }
  switch (press.key) {
    case Key::character:
      press_character(press.character);
      break;
    case Key::escape:
    case Key::backspace:
      back();
      break;
    case Key::enter:
      drill();
      break;
    case Key::tab:
    case Key::back_tab:
      show_table((static_cast<std::size_t>(page().table) + (press.key == Key::tab ? 1 : table_count - 1)) %
                 table_count);
      break;
    default:
      move(press);
      break;
  }
}

void ViewState::press_in_prompt(const KeyPress& press) {
  if (press.key == Key::character && press.character >= 0x20 && typed_.size() < most_typed) {
    append(typed_, press.character);
  } else if (press.key == Key::backspace) {
    remove_last(typed_);
  } else if (press.key == Key::escape) {
    prompt_ = Prompt::none;
  } else if (press.key == Key::enter && std::exchange(prompt_, Prompt::none) == Prompt::filter) {
    filter_ = typed_;
  } else if (press.key == Key::enter) {
    present().scope.thread = snapshot_ ? thread_named(*snapshot_, typed_) : std::nullopt;
    remark_ = !typed_.empty() && !page().scope.thread ? "there is no thread '" + typed_ + "'" : "";
  }
}

void ViewState::press_character(char32_t character) {
  if (character >= U'1' && character < U'1' + table_count) {
    show_table(character - U'1');
    return;
  }
  switch (character) {
    case U'q':
      over_ = true;
      break;
    case U'h':
    case U'?':
      open(page_with(PageKind::help));
      break;
    case U'w':
      open(page_with(PageKind::warnings));
      break;
    case U'm':
      present().focus = page().focus == Focus::matrix ? Focus::table : Focus::matrix;
      break;
    case U's':
      next_sort();
      break;
    case U't':
      filter_by_thread();
      break;
    case U'/':
      prompt_ = Prompt::filter;
      typed_ = filter_;
      break;
    case U'p':
    case U' ':
      pause();
      break;
    default:
      remark_ = "press h for the keys";
      break;
  }
}

void ViewState::move(const KeyPress& press) {
  const std::ptrdiff_t way = vertical(press.key, room_);
  const std::ptrdiff_t aside = press.key == Key::right ? 1 : press.key == Key::left ? -1 : 0;
  if (page().kind != PageKind::tables) {
    scroll(way);
  } else if (page().focus == Focus::matrix) {
    move_cell(way, aside);
  } else if (aside != 0) {
    show_table((static_cast<std::size_t>(page().table) + (aside > 0 ? 1 : table_count - 1)) % table_count);
  } else {
    move_row(way);
  }
}

void ViewState::move_row(std::ptrdiff_t by) {
  const std::vector<Row> all = rows();
  if (!all.empty()) {
    present().chosen[static_cast<std::size_t>(page().table)] = all[moved(chosen(all), by, all.size())].key;
  }
}

void ViewState::move_cell(std::ptrdiff_t rows, std::ptrdiff_t columns) {
  const auto at = cell();
  if (!at) {
    return;
  }
  const auto threads = matrix_threads(*snapshot_, page().scope);
  const auto step = [&](std::uint32_t index, std::ptrdiff_t by) {
    const auto found = std::ranges::find_if(threads, [&](const ThreadRow* thread) { return thread->index == index; });
    return threads[moved(static_cast<std::size_t>(found - threads.begin()), by, threads.size())]->index;
  };
  present().cell = std::pair(step(at->first, rows), step(at->second, columns));
}

void ViewState::scroll(std::ptrdiff_t by) {
  if (page().kind == PageKind::source) {
    present().first = moved(page().first - 1, by, std::max<std::size_t>(lines_, 1)) + 1;
  } else {
    present().first = moved(page().first, by, lines_ > room_ ? lines_ - room_ + 1 : 1);
  }
}

void ViewState::show_table(std::size_t table) {
  while (page().kind != PageKind::tables) {
    pages_.pop_back();
  }
  present().table = static_cast<Table>(table);
  present().focus = Focus::table;
}

void ViewState::next_sort() {
  Sort& sort = present().sorts[static_cast<std::size_t>(page().table)];
  do {
    sort = static_cast<Sort>((static_cast<std::size_t>(sort) + 1) % sort_count);
  } while (!has_column(page().table, sort));
}

/// Takes the chosen thread, else asks for one. Ends the filter if there is one.
void ViewState::filter_by_thread() {
  if (page().kind != PageKind::tables) {
    return;
  }
  if (page().scope.thread) {
    present().scope.thread.reset();
    return;
  }
  const std::vector<Row> all = rows();
  if (page().focus == Focus::matrix && cell()) {
    present().scope.thread = cell()->first;
  } else if (page().table == Table::threads && !all.empty()) {
    present().scope.thread = all[chosen(all)].thread;
  } else {
    prompt_ = Prompt::thread;
    typed_.clear();
  }
}

void ViewState::open(Page page) {
  constexpr std::size_t deepest = 32;
  if (page.kind != PageKind::tables && this->page().kind == page.kind && page.kind != PageKind::source) {
    return;  // it is shown
  }
  if (pages_.size() < deepest) {
    pages_.push_back(std::move(page));
  }
}

void ViewState::open_source(const PlaceRow& place) {
  if (place.file.empty()) {
    remark_ = "no source line is known; build the program with -g";
    return;
  }
  source_ = read_source_ ? read_source_(place.file) : std::nullopt;
  Page page = page_with(PageKind::source);
  page.place = place;
  page.first = std::max<std::size_t>(place.line, 1);
  open(std::move(page));
}

void ViewState::drill() {
  if (page().kind != PageKind::tables || !snapshot_) {
    return;
  }
  const std::vector<Row> all = rows();
  if (page().focus == Focus::table) {
    if (!all.empty()) {
      drill_row(all[chosen(all)]);
    }
    return;
  }
  const auto at = cell();
  if (!at || at->first == at->second) {
    remark_ = "choose a cell of two threads by the arrows";
    return;
  }
  Page inner = page();
  inner.scope.pair = at;
  inner.scope.thread.reset();
  inner.table = Table::objects;
  inner.focus = Focus::table;
  open(std::move(inner));
}

void ViewState::drill_row(const Row& row) {
  Page inner = page();
  inner.focus = Focus::table;
  switch (page().table) {
    case Table::objects:
      inner.scope.object = row.key;
      inner.table = Table::lines;
      open(std::move(inner));
      break;
    case Table::lines:
    case Table::loops:
      open_source(row.place);
      break;
    case Table::threads:
      inner.scope.thread = row.thread;
      inner.scope.pair.reset();
      inner.table = Table::objects;
      open(std::move(inner));
      break;
    case Table::findings: {
      const auto found = std::ranges::find_if(snapshot_->findings,
                                              [&](const FindingRow& finding) { return finding.sentence == row.name; });
      if (found != snapshot_->findings.end()) {
        Page all = page_with(PageKind::finding);
        all.finding = *found;
        open(std::move(all));
      }
      break;
    }
  }
}

/// Leaves the page, else what restricts it.
void ViewState::back() {
  if (pages_.size() > 1) {
    pages_.pop_back();
  } else if (page().scope.thread) {
    present().scope.thread.reset();
  } else if (!filter_.empty()) {
    filter_.clear();
  } else {
    present().focus = Focus::table;
  }
}

}  // namespace crosstalk::driver::live
