// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace crosstalk::observer {

/// CPU times of processes. The kernel counts a process's time by ticks, so differences are some 20 ms wrong.
struct CpuTimes {
  std::uint64_t observed_ns = 0;    // of the threads that are or were watched
  std::uint64_t unobserved_ns = 0;  // the rest, at least: of threads that came and went before they were met
};

}  // namespace crosstalk::observer
