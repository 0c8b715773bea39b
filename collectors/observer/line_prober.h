// SPDX-License-Identifier: Apache-2.0
// Probes lines of running processes from outside, if watchpoints cannot be used: reads a line twice while the thread
// that was sampled there stands still. Other threads stored the bytes that differ.
//
// We cannot stop a thread, but we can take its processor: the calling thread moves there, and the sampled thread waits
// for it in the meantime. /proc tells before the looks that it does, and after them that it has not run since: we may
// lose the processor, too. A thread that has run, or waits for something else, is not probed, since the bytes might be
// its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "collectors/observation.h"
#include "collectors/observer/target_process.h"
#include "collectors/observer/watched_thread.h"
#include "collectors/watch_policy/budget.h"
#include "collectors/watch_policy/two_looks.h"
#include "profile/arena.h"

namespace crosstalk::observer {

/// A thread's state and the processor that it ran on last, as in /proc/PID/stat.
struct ThreadPlace {
  char state = 0;  // 'R': it runs or waits for a processor
  int cpu = 0;
};
/// Reads them from the text of the file; nothing if it is malformed.
[[nodiscard]] std::optional<ThreadPlace> thread_place(std::string_view stat);

/// A thread's time on processors and the number of times that it was given one, as in /proc/PID/schedstat.
struct ThreadRuns {
  std::uint64_t ran_ns = 0, turns = 0;
  friend bool operator==(const ThreadRuns&, const ThreadRuns&) = default;
};
/// Reads them from the text of the file; nothing if it is malformed, or the kernel does not count.
[[nodiscard]] std::optional<ThreadRuns> thread_runs(std::string_view schedstat);

/// Looks at the line at `line` twice, about `gap_ns` apart, while the thread `tid` of that memory's process waits for
/// the processor `cpu`, on which it ran. Returns nothing, and counts it, if the line cannot be read or the thread does
/// not wait there.
[[nodiscard]] std::optional<watch_policy::TwoLooks> look_twice(const TargetMemory& memory, pid_t tid, int cpu,
                                                               std::uint64_t line, std::uint32_t gap_ns,
                                                               profile::ProbeCounts& skipped);

/// Not thread-safe.
class LineProber {
 public:
  /// Both must outlive it.
  LineProber(profile::ArenaHeader& arena, watch_policy::Budget& budget) : arena_(arena), budget_(budget) {}

  /// Probes the line of the sampled access if the draw and the budget allow it, and records it in the thread's ring.
  /// Returns the probe's id; 0: there was none. The thread may lose its processor for some 100 us.
  std::uint32_t probe(WatchedThread& thread, const collectors::Observation& seen, bool suspected);
  /// Returns the CPU time of the calling thread that went into probes.
  [[nodiscard]] std::uint64_t own_ns() const { return own_ns_; }

 private:
  profile::ArenaHeader& arena_;
  watch_policy::Budget& budget_;
  std::uint64_t mean_cost_ns_ = 100'000;
  std::uint64_t own_ns_ = 0;
};

}  // namespace crosstalk::observer
