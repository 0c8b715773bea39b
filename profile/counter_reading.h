// SPDX-License-Identifier: Apache-2.0
// Hardware counters of a thread, read together at moments of its time: as a record of a ring, and as rows of a profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "profile/records.h"

namespace crosstalk::profile {

/// The counts of a counter group at a moment. Tail: the counts, 8 bytes each, in the order of the group's rows of table
/// `counter`. Counts continue from reading to reading within one `life` of the group.
struct CounterReading {
  RecordHeader header;
  std::uint64_t time_ns = 0;
  std::uint64_t ip = 0;          // the interrupted instruction, in user mode
  std::uint64_t enabled_ns = 0;  // how long the thread ran with the group open,
  std::uint64_t running_ns = 0;  // and how long of that the group had its counters
  std::uint32_t life = 0;        // changes each time that the group is closed and opened again
  std::uint16_t group = 0;
  std::uint16_t cpu = 0;
};
static_assert(sizeof(CounterReading) == 48);

/// The most counters of a group: more than any processor has.
inline constexpr std::size_t most_group_counters = 32;

/// The quantities that figures are computed from. The numbers are stored in profiles.
enum class CounterQuantity : std::uint8_t {
  other = 0,  // as its name says
  cycles,     // of the core, while the thread is on it in user mode
  instructions,
  // Floating-point operations by vector width and precision; a multiply-add counts as two.
  flops_scalar,
  flops_sse_double,
  flops_sse_single,
  flops_avx2_double,
  flops_avx2_single,
  flops_avx512_double,
  flops_avx512_single,
  flops,  // of all widths
  loads,
  stores,
  // Lines of 64 bytes:
  l1d_fills,       // into the first level
  l1d_writebacks,  // from it to the second, modified
  l2_fills,
  l2_writebacks,
  l3_misses,     // requests of the core that the last level does not hold; without prefetches into that
  memory_fills,  // into the first level from memory
  // Parts of the cycles by use of the core's micro-operation slots (top-down):
  retiring,
  frontend_bound,
  backend_bound,
  bad_speculation,
  issued,    // retired, or thrown away later
  recovery,  // after a wrong prediction
  // Cycles without execution while a load waited for data beyond the level:
  stalls_load,
  stalls_l1d_miss,
  stalls_l2_miss,
  stalls_l3_miss,
  branch_misses,
  branches,
};
inline constexpr CounterQuantity last_counter_quantity = CounterQuantity::branches;
inline constexpr std::size_t counter_quantities = static_cast<std::size_t>(last_counter_quantity) + 1;

/// The name in options and reports: "cycles", "flops_avx2_double".
[[nodiscard]] constexpr const char* name_of(CounterQuantity quantity) {
  constexpr const char* names[] = {"other",
                                   "cycles",
                                   "instructions",
                                   "flops_scalar",
                                   "flops_sse_double",
                                   "flops_sse_single",
                                   "flops_avx2_double",
                                   "flops_avx2_single",
                                   "flops_avx512_double",
                                   "flops_avx512_single",
                                   "flops",
                                   "loads",
                                   "stores",
                                   "l1d_fills",
                                   "l1d_writebacks",
                                   "l2_fills",
                                   "l2_writebacks",
                                   "l3_misses",
                                   "memory_fills",
                                   "retiring",
                                   "frontend_bound",
                                   "backend_bound",
                                   "bad_speculation",
                                   "issued",
                                   "recovery",
                                   "stalls_load",
                                   "stalls_l1d_miss",
                                   "stalls_l2_miss",
                                   "stalls_l3_miss",
                                   "branch_misses",
                                   "branches"};
  static_assert(sizeof names / sizeof *names == counter_quantities);
  return names[static_cast<std::size_t>(quantity)];
}

/// An event of a group.
struct CounterRow {
  std::uint32_t id = 0;     // from 1 on, without gaps; those of a group follow each other
  std::uint32_t group = 0;  // from 1 on
  std::string name;         // "instructions"; of an event that the user named, that name
  std::string event;        // the opened event: "cpu/config=0xc0/ (INST_RETIRED:ANY_P)"
  std::string unit;         // "cpu", "cpu_core": it counts on cores of that kind only
  CounterQuantity quantity = CounterQuantity::other;
  double each = 1;  // how much of the quantity a count stands for
};

/// A reading in a profile.
struct ReadingRow {
  ThreadId thread;
  std::uint64_t time_ns = 0, ip = 0, enabled_ns = 0, running_ns = 0;
  std::uint32_t group = 0, life = 0;
  std::uint16_t cpu = 0;
  std::vector<std::uint64_t> counts;  // by counter of the group
};

}  // namespace crosstalk::profile
