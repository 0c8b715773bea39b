// SPDX-License-Identifier: Apache-2.0
// Results of hardware samples of memory accesses: a separate part of the analysis. Its figures and those of watchpoints
// are never mixed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attribution/model/data_source.h"
#include "symbolizer/model/model.h"

namespace crosstalk::attribution {

enum class ObjectKind;  // model.h

/// Latencies of loads, in cycles of the core; quantiles are those of the samples.
struct LatencyFigures {
  std::uint64_t samples = 0;
  double median = 0, p90 = 0, mean = 0;
  std::uint32_t greatest = 0;
};

/// Sums over samples of some accesses. Counts are of samples.
struct AccessFigures {
  std::uint64_t samples = 0, loads = 0, stores = 0;
  std::uint64_t without_address = 0;
  std::array<std::uint64_t, memory_levels> found{};   // of loads, by where the data was
  std::array<std::uint64_t, memory_levels> missed{};  // of loads, by where it was not, no more being told
  std::array<std::uint64_t, snoops> snoop{};          // of loads
  std::array<std::uint64_t, translations> translation{};
  std::uint64_t hitm_local = 0, hitm_remote = 0;  // loads that found the line modified in another cache
  std::uint64_t locked = 0, lock_unknown = 0, blocked_data = 0, blocked_address = 0;
  std::uint64_t store_hits = 0, store_misses = 0;  // of stores in the first-level cache; of others it is not told
  std::optional<double> accesses;                  // number represented; none: their event does not count accesses
  std::optional<double> hitm;                      // of these, loads of lines that were modified elsewhere
  std::optional<double> cost_cycles;  // latencies of all loads that they stand for, summed: those that overlap, each
  std::optional<double> cost_s;       // the same at the processor's nominal frequency
  std::optional<LatencyFigures> latency;
  [[nodiscard]] std::uint64_t hitm_samples() const { return hitm_local + hitm_remote; }
  /// False: no load has information on other caches.
  [[nodiscard]] bool tells_hitm() const { return snoop.front() < loads; }
};

/// A call path to some accesses.
struct CallPath {
  std::vector<symbolizer::Frame> frames;  // innermost first
  double weight = 0;                      // its share of the row; of sampled accesses, of those with calls
};

struct MemoryLine {
  std::string function, file, module;
  std::uint32_t line = 0;
  AccessFigures figures;
  std::vector<CallPath> call_paths;  // heaviest first
};
struct MemoryObject {
  std::string name;
  ObjectKind kind{};
  std::optional<std::uint64_t> size;
  AccessFigures figures;
};
/// Accesses count for the innermost loop only.
struct MemoryLoop {
  std::uint32_t id = 0;  // as in the list of loops
  std::string function, file, module;
  std::uint32_t line_begin = 0, line_end = 0, depth = 1;
  AccessFigures figures;
};
/// Loads by the place of their data.
struct SourceRow {
  MemoryLevel level = MemoryLevel::unknown;
  std::uint64_t samples = 0;
  double share = 0;  // of the sampled loads
  std::optional<double> accesses;
  std::optional<LatencyFigures> latency;
};

/// Accesses of one instruction to one offset of a shared line.
struct SharedOffset {
  std::uint32_t offset = 0;
  std::string field;  // of the object; empty: not known
  std::string function, file, module;
  std::uint32_t line = 0;
  std::uint64_t instruction = 0;  // address in the module's file, or at run time where there is none
  std::vector<std::uint32_t> threads;
  std::vector<std::int32_t> nodes;  // of the accessing processors; -1: not known
  std::size_t processors = 0;       // number of accessing ones
  AccessFigures figures;
  std::optional<double> hitm_local_latency, hitm_remote_latency, other_latency;  // medians, cycles
};
/// A line that several threads access, at least one of them storing, or that was found modified in another cache.
struct SharedLine {
  std::uint64_t address = 0;        // in process `pid`
  std::optional<std::int32_t> pid;  // none: the kernel's
  std::string object;
  std::uint64_t object_offset = 0;  // of the line's first accessed byte
  std::vector<std::uint32_t> threads;
  std::vector<std::int32_t> nodes;
  double hitm_share = 0;  // of all loads of modified lines
  AccessFigures figures;
  std::vector<SharedOffset> offsets;  // most loads of the modified line first
};

/// A pair of threads, by samples of one line near in time. A sample is split if several threads may have been the
/// producer.
struct SampledPair {
  std::uint32_t producer = 0, consumer = 0;
  double hitm_samples = 0, hitm_remote_samples = 0;
  double overlapping_samples = 0;  // of them, whose store was of the same bytes
  std::optional<double> hitm;      // loads of lines that the producer had modified; none: no weights in accesses
  std::optional<std::array<double, 2>> hitm_ci95;
  double possible_samples = 0;  // accesses of which it is not told whether the line came from another cache
};
struct SampledSharing {
  double window_s = 0;
  bool hitm_known = false;                                   // the source tells of modified lines
  std::vector<SampledPair> pairs;                            // by producer, consumer
  std::uint64_t hitm_samples = 0, unattributed_samples = 0;  // the latter: without a store of another thread near
  std::optional<double> unattributed_hitm;
};

struct MemoryEvent {
  std::string name;
  std::uint64_t samples = 0;  // of accesses
  std::uint32_t least_latency_cycles = 0;
  bool at_access = true;
  bool filtered = false;  // the processor has thrown samples away: by misses of L3, or by latency
};

struct Memory {
  std::string unknown = "not looked for";  // why there is nothing; empty: there is
  std::vector<MemoryEvent> events;         // the events of sampled accesses
  AccessFigures totals;
  AccessFigures on_shared_lines;
  std::vector<SourceRow> sources;  // by level
  std::vector<MemoryLine> lines;
  std::vector<MemoryObject> objects;
  std::vector<MemoryLoop> loops;
  std::vector<SharedLine> shared_lines;  // most loads of modified lines first
  std::uint64_t all_lines = 0, all_objects = 0, all_loops = 0, all_shared_lines = 0;  // before the least were left out
  SampledSharing sharing;
  std::vector<std::string> limits;  // limits of these figures, a sentence each
};

}  // namespace crosstalk::attribution
