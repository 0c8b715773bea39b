// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {

/// Returns the vdso's clock, nanoseconds; 0: there is none, and a system call would take longer than the measured
/// waits.
inline std::uint64_t wait_clock_ns() {
  return vdso_clock_gettime.load(std::memory_order_relaxed) != nullptr ? monotonic_ns() : 0;
}

}  // namespace crosstalk::in_target
