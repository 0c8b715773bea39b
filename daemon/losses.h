// SPDX-License-Identifier: Apache-2.0
// Messages about what a recording lost or could not observe.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "profile/arena.h"
#include "profile/model.h"

namespace crosstalk::daemon {

/// Counts since the recording's begin.
struct LossCounts {
  std::uint64_t records = 0;      // that found a ring full
  std::uint64_t corruptions = 0;  // times that records were impossible
  std::uint32_t unread = 0;       // threads whose ring could not be mapped by the recorder
  std::uint32_t slots = 0;        // of the arena: the most threads at once
};

/// Tells what has been lost since it told last. Not thread-safe.
class Losses {
 public:
  using RemarksOnMemory = std::function<std::vector<profile::MessageRow>(const profile::MemoryCounts&)>;

  /// `remarks`: makes messages of the counts of memory samples; may be empty.
  [[nodiscard]] std::vector<profile::MessageRow> take(const LossCounts& counts, const profile::ArenaHeader& arena,
                                                      const RemarksOnMemory& remarks);

 private:
  struct Told {
    std::uint64_t records = 0, corruptions = 0, threads_unobserved = 0, threads_without_memory = 0, processes = 0;
    std::uint64_t accesses = 0, in_kernel = 0, without_access = 0, half_updates = 0, lost = 0, throttled = 0;
    std::uint64_t clock_alone = 0, without_counter = 0;
  };
  void add_memory(const profile::MemoryCounts& counts, const RemarksOnMemory& remarks,
                  std::vector<profile::MessageRow>& messages);

  Told told_;
};

}  // namespace crosstalk::daemon
