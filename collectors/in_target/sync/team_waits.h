// SPDX-License-Identifier: Apache-2.0
// Measures waits at the end of OpenMP's parallel regions. This barrier is inside the runtime library, where no call can
// be interposed, and the team's other threads do not return from it: they wait there for the next region. The barrier
// opens when the last thread comes, so a thread waits from the end of its part until the end of the last thread's part.
// The last thread knows that time, and all others are surely in the barrier then: it adds their waits to their tables.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/in_target/sync/measured_wait.h"

namespace crosstalk::in_target {

/// A parallel region, on the stack of the thread that it begins in.
class TeamRegion {
 public:
  using Routine = void (*)(void*);
  TeamRegion(Routine routine, void* data, const void* site);
  /// Ends the wait of the thread that the region began in, which has come back from it.
  ~TeamRegion();
  TeamRegion(const TeamRegion&) = delete;
  TeamRegion& operator=(const TeamRegion&) = delete;

  /// The routine that each thread of the team calls instead, with the region as its argument.
  static void run_part(void* region);
  /// Asks the runtime library how many threads the calling thread's team has; 0: it cannot say.
  using CountThreads = std::uint32_t (*)();
  static void ask_for_threads(CountThreads count);

 private:
  void part_done();
  void open_barrier(std::uint64_t now_ns) const;

  Routine routine_;
  void* data_;
  profile::ThreadWaits::Place place_;
  std::int32_t pid_;                         // the process that it began in
  OwnWaits* const beginner_;                 // null: its waits are not measured
  std::uint64_t beginner_since_ns_ = 0;      // since when it is done with its part; 0: it waits in another wait
  std::atomic<OwnWaits*> waiting_{nullptr};  // the others
  std::atomic<std::uint32_t> done_{0};
};

}  // namespace crosstalk::in_target
