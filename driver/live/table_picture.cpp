// SPDX-License-Identifier: Apache-2.0
// The tables of objects, lines, loops, threads and findings.
#include <fmt/format.h>

#include <algorithm>

#include "driver/live/picture_parts.h"

namespace crosstalk::driver::live {
namespace {

/// The columns of a table: figures, a word, the name, and perhaps something about it.
struct Layout {
  const char *cost, *now, *gain;  // heads; null: the table has none
  const char* kind;
  int kind_columns;
  const char* name;
  const char* about;  // null: none
  double about_part;  // of the room for the name
};

Layout layout_of(Table table, int width) {
  constexpr int wide = 100;  // a narrower screen needs its columns for names
  switch (table) {
    case Table::lines:
      return {"cost", "now", "gain", "role", 7, "source line", "object", 0.35};
    case Table::loops:
      return {"time", "now", "own", "limit", 11, "loop", nullptr, 0};
    case Table::threads:
      return {"time", "now", "waiting", "tid", 8, "thread", nullptr, 0};
    case Table::findings:
      return {"cost", nullptr, "gain", "kind", 15, "finding", nullptr, 0};
    case Table::objects:
      break;
  }
  return {"cost", "now", "gain", "sharing", 15, "object", width >= wide ? "memory" : nullptr, 0.15};
}

struct Places {
  int now = 0, gain = 0, kind = 0, name = 0, about = 0, end = 0;
};

Places places_of(const Layout& layout, int width) {
  Places places;
  places.now = margin + figure_columns;
  places.gain = places.now + (layout.now != nullptr ? figure_columns : 0);
  places.kind = places.gain + figure_columns + 2;
  places.name = places.kind + layout.kind_columns + 2;
  places.end = width - margin;
  const int room = places.end - places.name;
  const int about_columns = std::max(8, static_cast<int>(room * layout.about_part));
  places.about = layout.about != nullptr ? places.end - about_columns : places.end + 1;
  return places;
}

void draw_table_heads(CellBuffer& cells, int row, Table table, const Layout& layout, const Places& places, Sort sort) {
  const Sort by = has_column(table, sort) ? sort : Sort::cost;
  const auto mark = [&](const char* head, Sort of) {
    return std::string(head) + (of == by ? cells.sign("▼", "v") : "");
  };
  const auto ink = [&](Sort of) { return of == by ? Ink::strong : Ink::faint; };
  cells.put_right(row, margin, mark(layout.cost, Sort::cost), figure_columns, ink(Sort::cost));
  if (layout.now != nullptr) {
    cells.put_right(row, places.now, mark(layout.now, Sort::now), figure_columns, ink(Sort::now));
  }
  cells.put_right(row, places.gain, mark(layout.gain, Sort::gain), figure_columns, ink(Sort::gain));
  cells.put_left(row, places.kind, layout.kind, layout.kind_columns, Ink::faint);
  cells.put_left(row, places.name, mark(layout.name, Sort::name), places.about - 1 - places.name, ink(Sort::name));
  if (layout.about != nullptr) {
    cells.put_left(row, places.about, layout.about, places.end - places.about, Ink::faint);
  }
}

/// The cost, or what was seen if no cost is known.
std::string cost_text(const Row& row) {
  if (row.cost.favoured && (*row.cost.favoured > 0 || row.seen == 0)) {
    return part_text(row.cost.favoured);
  }
  return row.seen > 0 ? fmt::format("{} seen", row.seen) : "-";
}

/// The column of gains, in which other tables have other figures.
std::string gain_text(const CellBuffer& cells, const Row& row, Table table) {
  if (table == Table::loops || table == Table::threads) {
    return part_text(table == Table::loops ? row.own : row.gain);
  }
  if (row.gain && !(*row.gain > 0)) {
    return "none";
  }
  return (row.gain && row.gain_is_limit ? cells.sign("≤ ", "<") : "") + part_text(row.gain);
}

/// The name, cut so that the place in the source behind it is whole.
std::string name_with_source(const CellBuffer& cells, const Row& row, int columns) {
  constexpr int least_name = 6;
  const std::string source = clean(row.source, cells.charset());
  const int room = columns - display_width(source) - 2;
  if (row.name.empty() || source.empty() || room < least_name) {
    return !source.empty() ? source : row.name.empty() ? "unknown code" : row.name;
  }
  return fit_middle(clean(row.name, cells.charset()), room, cells.charset()) + "  " + source;
}

void draw_row(CellBuffer& cells, int at, const Row& row, Table table, const Layout& layout, const Places& places) {
  const Ink ink = row.present ? Ink::plain : Ink::faint;
  cells.put_right(at, margin, cost_text(row), figure_columns, row.present ? Ink::strong : Ink::faint);
  if (layout.now != nullptr) {
    cells.put_right(at, places.now, part_text(row.cost.now), figure_columns, ink);
  }
  cells.put_right(at, places.gain, gain_text(cells, row, table), figure_columns, ink);
  const Ink of_kind = !row.present                                   ? Ink::faint
                      : row.is_false_sharing                         ? Ink::false_sharing
                      : table == Table::objects && !row.kind.empty() ? Ink::true_sharing
                                                                     : Ink::plain;
  cells.put_left(at, places.kind, row.kind.empty() ? "-" : row.kind, layout.kind_columns, of_kind);
  const int name_columns = places.about - 1 - places.name;
  if (table == Table::findings) {
    cells.put(at, places.name, fit_end(clean(row.name, cells.charset()), name_columns, cells.charset()), ink);
  } else {
    cells.put_left(at, places.name, name_with_source(cells, row, name_columns), name_columns, ink);
  }
  if (layout.about != nullptr) {
    cells.put_left(at, places.about, row.about, places.end - places.about, Ink::faint);
  }
}

/// The reason why a table is empty. What findings say about communication that was not seen says how sure that is.
std::string nothing_text(Table table, const Snapshot& snapshot) {
  if (table != Table::objects && table != Table::lines) {
    return "There is nothing to show.";
  }
  if (!snapshot.cells.empty()) {
    return "Nothing fits.";
  }
  const auto says_why = std::ranges::find_if(
      snapshot.findings, [](const FindingRow& finding) { return finding.kind == "none" || finding.kind == "blind"; });
  return says_why != snapshot.findings.end() ? says_why->sentence : "No communication was seen.";
}

}  // namespace

int draw_table(CellBuffer& cells, int row, const Snapshot& snapshot, const std::vector<Row>& rows,
               const TableView& view) {
  const Layout layout = layout_of(view.table, cells.columns());
  const Places places = places_of(layout, cells.columns());
  draw_table_heads(cells, row++, view.table, layout, places, view.sort);
  if (rows.empty()) {
    return draw_paragraph(cells, row, margin + 1, nothing_text(view.table, snapshot), row + std::max(view.most_rows, 1),
                          Ink::faint);
  }
  const auto fits = static_cast<std::size_t>(std::max(view.most_rows, 1));
  const std::size_t chosen = view.chosen.value_or(0);
  const std::size_t first = chosen >= fits ? chosen - fits + 1 : 0;
  for (std::size_t i = first; i < std::min(rows.size(), first + fits); ++i) {
    draw_row(cells, row, rows[i], view.table, layout, places);
    if (view.chosen == i) {
      cells.paint(row, 0, cells.columns(), Ink::chosen);
    }
    ++row;
  }
  return row;
}

}  // namespace crosstalk::driver::live
