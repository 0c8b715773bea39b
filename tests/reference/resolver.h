// SPDX-License-Identifier: Apache-2.0
// Resolves raw counts to source lines, data objects and loops, named as in crosstalk's reports.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/reference/counter.h"
#include "tests/reference/raw_counts.h"

namespace crosstalk::reference {

/// Communications by thread pair; ordered.
using Cells = std::map<ThreadPair, Counts>;

struct SourceSite {
  std::string file, function;  // empty: unknown
  std::uint32_t line = 0;      // 0: unknown
  auto operator<=>(const SourceSite&) const = default;
};

struct SiteRow {
  SourceSite site;
  bool is_producer = false;
  Cells cells;
};

struct SitePairRow {
  SourceSite producer, consumer;
  Cells cells;
};

struct DataName {
  std::string name;
  std::string kind;                    // "global", "heap"; empty: unknown
  std::optional<std::uint64_t> bytes;  // of a global
  auto operator<=>(const DataName&) const = default;
};

struct ObjectRow {
  DataName object;
  Cells cells;
};

struct LineRow {
  std::uint64_t address = 0;  // run time, of the cache line
  std::string object;         // that communicates most there; names as in ObjectRow
  Cells cells;
};

struct Work {
  std::uint64_t instructions = 0, flops = 0;
  std::uint64_t loads = 0, stores = 0;            // accesses
  std::uint64_t load_bytes = 0, store_bytes = 0;  // bytes
  Work& operator+=(const Work& other);
};

struct LoopRow {
  std::optional<std::size_t> parent;  // index of the loop around it
  std::string function, file, module;
  std::uint32_t line_begin = 0, line_end = 0, depth = 1;
  std::uint64_t iterations = 0;  // executions of its header
  Work work, self;               // with and without inner loops
};

struct Reference {
  std::uint32_t threads = 0;
  std::uint64_t stolen_turns = 0, quantum = 0, seed = 0;
  Cells cells;
  std::vector<RawInvalidations> invalidations;
  std::vector<SiteRow> sites;  // most communications first, as all lists of rows
  std::vector<SitePairRow> pairs;
  std::vector<ObjectRow> objects;
  std::vector<LineRow> lines;
  std::vector<LoopRow> loops;  // most instructions first
  Work work;                   // of the whole program
};

[[nodiscard]] std::uint64_t total(const Cells& cells);
/// Reads the files that `raw` names.
[[nodiscard]] Reference resolve(const RawCounts& raw);

}  // namespace crosstalk::reference
