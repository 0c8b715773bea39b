// SPDX-License-Identifier: Apache-2.0
// The rows of the tables below the matrix: what a snapshot tells, within a scope, filtered and sorted. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/live/snapshot.h"

namespace crosstalk::driver::live {

enum class Table : std::uint8_t { objects, lines, loops, threads, findings };
inline constexpr std::size_t table_count = 5;
inline constexpr std::array<const char*, table_count> table_names = {"Objects", "Lines", "Loops", "Threads",
                                                                     "Findings"};

/// The order of rows: figures descending, names ascending.
enum class Sort : std::uint8_t { cost, now, gain, name };
inline constexpr std::size_t sort_count = 4;
/// False for a figure that the table does not have.
[[nodiscard]] bool has_column(Table table, Sort sort);

/// The scope of the rows: all that is set at the same time.
struct Scope {
  std::optional<std::uint32_t> thread;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> pair;  // producer, consumer
  std::string object;                                           // by name; empty: all
  [[nodiscard]] bool all() const { return !thread && !pair && object.empty(); }
};

/// A part of the program's CPU time that favours the present: the mean of its part in the latest refresh and of that in
/// the whole window. A change of load is half seen at once, and what a single refresh tells by chance counts half.
struct Part {
  std::optional<double> favoured;  // absent: not known
  std::optional<double> now;       // in the latest refresh
};
[[nodiscard]] Part part_of(const Snapshot& snapshot, const std::optional<double>& window_s,
                           const std::optional<double>& latest_s);

struct Row {
  std::string key;                  // the same in successive snapshots
  Part cost;                        // of loops and threads: CPU time
  std::optional<double> gain, own;  // parts of all CPU time; own: of loops, without inner ones
  bool gain_is_limit = false;       // the gain is at most that
  std::uint64_t seen = 0;           // communications
  bool present = true;              // false: nothing of it in the latest refresh
  std::string kind, name, about;
  std::string source;  // "hit_counter.cpp:41", behind the name; may be empty
  bool is_false_sharing = false;
  PlaceRow place;                       // to show the source of; no file: none
  std::optional<std::uint32_t> thread;  // of threads
};

/// The rows within the scope whose text contains `filter` (any case), sorted. Within a pair, or for a thread that
/// consumes or produces, costs are those of its pairs.
[[nodiscard]] std::vector<Row> rows_of(const Snapshot& snapshot, Table table, const Scope& scope,
                                       const std::string& filter, Sort sort);

/// Threads in the order of the matrix: those that communicate before others, busier ones before (by steps of the
/// shades, so that equals keep their places), then by index.
[[nodiscard]] std::vector<const ThreadRow*> matrix_threads(const Snapshot& snapshot, const Scope& scope);

/// "3 worker"; the number alone if the thread has no name, or is not known.
[[nodiscard]] std::string thread_label(const Snapshot& snapshot, std::uint32_t thread);
/// "hit_counter.cpp:41"; empty: not known.
[[nodiscard]] std::string source_label(const PlaceRow& place);
/// The thread that `text` names: its index, its id, or the begin of its name. nullopt: none, or `text` is empty.
[[nodiscard]] std::optional<std::uint32_t> thread_named(const Snapshot& snapshot, const std::string& text);

}  // namespace crosstalk::driver::live
