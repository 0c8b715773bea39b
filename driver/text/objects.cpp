// SPDX-License-Identifier: Apache-2.0
// Variables and heap blocks that threads exchange, with a map of the bytes of a line that each thread accesses.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "attribution/advice.h"
#include "attribution/model/sentences.h"
#include "driver/text/report.h"
#include "driver/words/names.h"

namespace crosstalk::driver {

namespace {

using attribution::Analysis;
using attribution::ObjectRow;
using attribution::OffsetRow;

constexpr std::uint64_t line_bytes = 64;
constexpr std::size_t most_threads = 8;  // rows of a map

int label_columns(const Canvas& canvas) { return canvas.width() >= 80 ? 16 : 12; }

/// Accesses to a byte: bit 0 loaded, bit 1 stored.
using Bytes = std::array<unsigned, line_bytes>;

/// Returns the index of the 64-byte piece of the object with the most accesses of the most threads.
std::uint64_t busiest_piece(const ObjectRow& object) {
  struct Weight {
    std::set<std::uint32_t> threads;
    std::uint64_t accesses = 0;
  };
  std::map<std::uint64_t, Weight> pieces;
  for (const OffsetRow& row : object.offsets) {
    Weight& piece = pieces[row.offset / line_bytes];
    piece.threads.insert(row.thread);
    piece.accesses += row.loads + row.stores;
  }
  const auto busiest = std::max_element(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.second.threads.size() > 1, a.second.accesses) <
           std::make_pair(b.second.threads.size() > 1, b.second.accesses);
  });
  return busiest == pieces.end() ? 0 : busiest->first;
}

std::map<std::uint32_t, Bytes> touched(const ObjectRow& object, std::uint64_t piece) {
  std::map<std::uint32_t, Bytes> threads;
  const std::uint64_t begin = piece * line_bytes;
  for (const OffsetRow& row : object.offsets) {
    const std::uint64_t width = std::clamp<std::uint64_t>(row.bytes, 1, line_bytes);
    if (row.offset >= begin + line_bytes || row.offset + width <= begin) {
      continue;
    }
    Bytes& bytes = threads[row.thread];
    for (std::uint64_t at = std::max(row.offset, begin); at < std::min(row.offset + width, begin + line_bytes); ++at) {
      bytes[at - begin] |= (row.loads != 0 ? 1U : 0U) | (row.stores != 0 ? 2U : 0U);
    }
  }
  return threads;
}

std::string map_row(const Canvas& canvas, const Bytes& bytes, int bytes_a_column) {
  static constexpr std::array<char, 4> letters = {'.', 'r', 'w', 'b'};
  std::string text;
  for (std::size_t at = 0; at < line_bytes; at += static_cast<std::size_t>(bytes_a_column)) {
    unsigned seen = 0;
    for (std::size_t i = at; i < at + static_cast<std::size_t>(bytes_a_column); ++i) {
      seen |= bytes[i];
    }
    const std::string letter = seen == 0 ? canvas.sign("·", ".") : std::string(1, letters[seen]);
    const Hue hue = seen == 0 ? Hue::faint : seen == 1 ? Hue::true_sharing : Hue::false_sharing;
    text += canvas.colored(letter, hue);
    text += at % 8 + static_cast<std::size_t>(bytes_a_column) == 8 ? " " : "";
  }
  return text;
}

/// Returns the offset above each group of eight bytes. Skips offsets that have no room: every second one far into a
/// large block, with long offsets and narrow columns.
std::string ruler_of(std::uint64_t piece, int bytes_a_column) {
  std::string ruler;
  int column = 0;
  for (std::uint64_t at = 0; at < line_bytes; at += 8, column += 8 / bytes_a_column + 1) {
    if (column == 0 || display_width(ruler) < column) {
      ruler = pad_right(ruler, column) + "+" + std::to_string(piece * line_bytes + at);
    }
  }
  return ruler;
}

/// Returns "a lock" for a field that threads wait at; else empty.
std::string kind_of_field(const ObjectRow& object, const std::string& name) {
  const auto found = std::find_if(object.sync_fields.begin(), object.sync_fields.end(),
                                  [&](const attribution::SyncField& field) { return field.field == name; });
  return found == object.sync_fields.end() ? std::string() : attribution::noun_of(found->kind);
}

/// Lists the accessed fields of the piece: "+0 mutex (std::mutex, a lock), +40 ready (...)". An element of a numeric
/// array appears as its offset.
std::string fields_text(const ObjectRow& object, std::uint64_t piece) {
  constexpr std::size_t most_fields = 8;
  std::map<std::uint64_t, const OffsetRow*> fields;
  for (const OffsetRow& row : object.offsets) {
    const bool only_index = row.field.starts_with('[') && row.field.find('.') == std::string::npos;
    if (row.offset / line_bytes == piece && !row.field.empty() && !only_index) {
      fields.try_emplace(row.field_begin, &row);
    }
  }
  std::string text;
  std::size_t shown = 0;
  for (const auto& [begin, row] : fields) {
    if (shown++ == most_fields) {
      return text + fmt::format(" and {} more", fields.size() - most_fields);
    }
    const std::string kind = kind_of_field(object, row->field);
    const std::string about = row->type + (row->type.empty() || kind.empty() ? "" : ", ") + kind;
    text +=
        fmt::format("{}+{} {}{}", text.empty() ? "" : ", ", begin, row->field, about.empty() ? "" : " (" + about + ")");
  }
  return text;
}

void draw_map(Canvas& canvas, const Analysis& analysis, const ObjectRow& object) {
  if (object.offsets.empty()) {
    return;
  }
  const int bytes_a_column = 4 + label_columns(canvas) + 2 + 64 + 8 <= canvas.width() ? 1 : 2;
  const std::uint64_t piece = busiest_piece(object);
  const std::string ruler = ruler_of(piece, bytes_a_column);
  const int room = canvas.width() - 4 - label_columns(canvas) - 2;
  canvas.line(canvas.colored(
      "    " + pad_right("thread", label_columns(canvas)) + "  " + fit_end(ruler, room, Charset::ascii), Hue::faint));
  const auto threads = touched(object, piece);
  std::size_t shown = 0;
  for (const auto& [thread, bytes] : threads) {
    if (shown++ == most_threads) {
      canvas.line(canvas.colored(fmt::format("    and {} more threads", threads.size() - most_threads), Hue::faint));
      break;
    }
    canvas.line("    " + canvas.cell(thread_label(analysis, thread), label_columns(canvas)) + "  " +
                map_row(canvas, bytes, bytes_a_column));
  }
  if (const std::string fields = fields_text(object, piece); !fields.empty()) {
    canvas.paragraph("    ", fields);
  }
}

std::string about(const ObjectRow& object) {
  std::string text = object_kind_name(object.kind);
  if (object.blocks > 1) {
    text += (text.empty() ? "" : ", ") + std::to_string(object.blocks) + " blocks";
  }
  if (object.size) {
    text += (text.empty() ? "" : ", ") + bytes_text(*object.size);
  }
  return text;
}

void draw_object(Canvas& canvas, const ObjectRow& object, double duration_s) {
  const Exchanged amount = exchanged(object.cells, has_cost(object.cells));
  const attribution::Sum sum = advised_gain(object);
  const std::string gain = sum.gain_ci95 && sum.cost_s > 0
                               ? "  gain " + gain_text(canvas, sum) + (sum.one_processor ? ", on one processor" : "")
                               : "";
  const std::string facts = fmt::format("{:>10}  {:<6}", amount_text(object.cells), sharing_word(amount)) + gain;
  const int room = canvas.width() - 2 - display_width(facts) - 2;
  const std::string name = attribution::object_in_words(object);
  const std::string kind = about(object);
  canvas.line("  " + canvas.colored(facts, sharing_hue(amount)) + "  " +
              canvas.cell(name + (kind.empty() ? "" : "  (" + kind + ")"), room));
  if (const std::string rate = rate_of_exchange_text(object.cells, duration_s); !rate.empty()) {
    canvas.line("    " + canvas.cell(rate, canvas.width() - 4));
  }
  if (!object.allocated_at.empty()) {
    canvas.line(
        canvas.colored("    " + canvas.cell("allocated at " + object.allocated_at, canvas.width() - 4), Hue::faint));
  }
}

void draw_allocation(Canvas& canvas, const ObjectRow& object) {
  constexpr std::size_t most = 8;
  for (std::size_t i = 0; i < std::min(most, object.allocation_path.size()); ++i) {
    const symbolizer::Frame& frame = object.allocation_path[i];
    canvas.line(canvas.colored(
        "      " + canvas.cell(place_text(frame.function, frame.source.file, frame.source.line), canvas.width() - 6),
        Hue::faint));
  }
}

}  // namespace

void draw_objects(Canvas& canvas, const Analysis& analysis, std::size_t most, bool detailed) {
  const auto& objects = analysis.communication.objects;
  if (objects.empty()) {
    if (detailed) {
      canvas.heading("Objects");
      canvas.paragraph("  ", "No communicating variable or heap block is known.");
    }
    return;
  }
  canvas.heading("Objects", "which thread touches which byte: r read, w written, b both");
  const std::size_t shown = std::min(most, objects.size());
  for (std::size_t i = 0; i < shown; ++i) {
    if (i != 0) {
      canvas.blank();
    }
    draw_object(canvas, objects[i], analysis.duration_s);
    if (detailed) {
      draw_allocation(canvas, objects[i]);
    }
    draw_map(canvas, analysis, objects[i]);
  }
  draw_more(canvas, objects.size(), shown, ": crosstalk report --view objects");
}

}  // namespace crosstalk::driver
