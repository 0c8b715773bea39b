// SPDX-License-Identifier: Apache-2.0
// A thread of the target as the observer has it.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectors/observer/arena_ring.h"
#include "collectors/observer/counter_reader.h"
#include "collectors/observer/kernel_events.h"
#include "collectors/observer/memory_sampler.h"
#include "collectors/observer/open_event.h"
#include "collectors/observer/perf_ring.h"
#include "collectors/observer/sample_pace.h"
#include "collectors/observer/wait_looks.h"

namespace crosstalk::observer {

class Target;

struct WatchedThread {
  WatchedThread(pid_t thread, std::unique_ptr<ArenaRing> ring, OpenEvent ticking, PerfRing perf_ring)
      : tid(thread), records(std::move(ring)), clock(std::move(ticking)), events(std::move(perf_ring)) {}

  pid_t tid;
  Target* process = nullptr;  // the thread's process
  std::unique_ptr<ArenaRing> records;
  OpenEvent clock;
  std::optional<MemorySampler> memory;    // beside the clock, if its accesses can be sampled
  bool lacked_counter = false;            // one of them never had a counter, which is entered in the session's sums
  std::optional<CounterReader> counters;  // beside the clock, if they are wanted
  bool counters_tried = false;            // to open, since it was met or roused
  std::optional<PerfRing> events;         // of the clock, and of the thread's watchpoints; absent: it rests
  std::uint64_t begin_ns = 0;             // CLOCK_MONOTONIC, when it was met
  std::uint64_t random = 1;               // state of its draws
  std::uint64_t cpu_ns = 0;               // under its clocks, at its last sample
  std::uint64_t cpu_before_ns = 0;        // under its former clocks, and before the first if it began meanwhile
  std::uint64_t uncounted_ns = 0;         // that the clocks did not count: of context switches, and while it rested
  bool fresh = true;                      // its clock has not ticked yet
  std::uint64_t period_ns = 0;            // of its clock
  std::uint64_t first_period_ns = 0;      // and when it was opened
  bool gone = false;                      // its end was seen
  bool traced = false;                    // by a debugger or the like, at the last review
  std::uint64_t samples = 0;
  // A clock costs something at each context switch. A thread that switches very often has one for a part of the time,
  // drawn by chance, and rests in between: each of its samples stands for more.
  double part = 1;                              // of the time, as it is meant to be
  ClockedShare share;                           // time that its samples stand for
  std::uint64_t turn_ns = 0;                    // time when it begins or ends its rest
  std::uint64_t stack_low = 0, stack_high = 0;  // of the mapping that its stack pointer was in; 0, 0: not known yet
  std::uint64_t life_before_ns = 0;             // CPU time of its life that is not recorded
  std::uint64_t ran_ns = 0;                     // CPU time that is, at the last review
  std::uint64_t switches_before = 0;            // context switches when it was met
  std::uint64_t switches_charged = 0;           // since then, at the last review
  std::unique_ptr<WaitLooks> looks;             // at its waits; null: none so far

  /// The recorded part of the CPU time of its life.
  [[nodiscard]] std::uint64_t recorded_ns(std::uint64_t life_ns) const {
    return life_ns - std::min(life_before_ns, life_ns);
  }
  /// `cpu_ns`: the recorded part by the scheduler, which is up to a tick behind.
  void note_uncounted(std::uint64_t cpu_ns) {
    const std::uint64_t counted_ns = cpu_before_ns + read_clock(clock);
    uncounted_ns = std::max(uncounted_ns, cpu_ns - std::min(counted_ns, cpu_ns));
  }
  [[nodiscard]] bool rests() const { return !events.has_value(); }
  [[nodiscard]] std::uint32_t number() const { return records->number(); }
  [[nodiscard]] bool on_stack(std::uint64_t address) const { return address >= stack_low && address < stack_high; }
};

using WatchedThreads = std::vector<std::unique_ptr<WatchedThread>>;

}  // namespace crosstalk::observer
