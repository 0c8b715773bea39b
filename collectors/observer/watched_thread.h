// SPDX-License-Identifier: Apache-2.0
// A thread of the target as the observer has it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "collectors/observer/arena_ring.h"
#include "collectors/observer/perf_ring.h"

namespace crosstalk::observer {

/// An event of the kernel's that is open.
struct OpenEvent {
  UniqueFd fd;
  std::uint64_t id = 0;  // by which its samples are known
};

struct WatchedThread {
  WatchedThread(pid_t thread, std::unique_ptr<ArenaRing> ring, OpenEvent ticking, PerfRing perf_ring)
      : tid(thread), records(std::move(ring)), clock(std::move(ticking)), events(std::move(perf_ring)) {}

  pid_t tid;
  std::unique_ptr<ArenaRing> records;
  OpenEvent clock;
  PerfRing events;                    // of the clock, and of the thread's watchpoints
  std::uint64_t begin_ns = 0;         // CLOCK_MONOTONIC, when it was met
  std::uint64_t random = 1;           // state of its draws
  std::uint64_t first_weight_ns = 0;  // CPU time that its first sample stands for
  std::uint64_t cpu_ns = 0;           // since it is watched, at its last sample
  std::uint64_t samples = 0;
  std::uint64_t stack_low = 0, stack_high = 0;  // of the mapping that its stack pointer was in; 0, 0: not known yet
  std::uint64_t switches_before = 0;            // context switches when it was met
  std::uint64_t switches_charged = 0;           // since then, up to the last charge

  [[nodiscard]] std::uint32_t number() const { return records->number(); }
  [[nodiscard]] bool on_stack(std::uint64_t address) const { return address >= stack_low && address < stack_high; }
};

using WatchedThreads = std::vector<std::unique_ptr<WatchedThread>>;

}  // namespace crosstalk::observer
