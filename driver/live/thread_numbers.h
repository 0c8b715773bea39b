// SPDX-License-Identifier: Apache-2.0
// Numbers for threads that stay the same from one file of a recording to the next. Files number their threads each by
// itself; a thread is known by its process and its kernel's id, until it ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "profile/model.h"

namespace crosstalk::driver::live {

/// Not thread-safe.
class ThreadNumbers {
 public:
  /// Returns the numbers of a file's threads, in their order there.
  [[nodiscard]] std::vector<std::uint32_t> of(std::span<const profile::ThreadRow> threads,
                                              std::span<const profile::ProcessRow> processes);

 private:
  std::map<std::pair<std::int32_t, std::int32_t>, std::uint32_t> numbers_;  // by pid, tid, of those that live
  std::uint32_t next_ = 0;
};

}  // namespace crosstalk::driver::live
