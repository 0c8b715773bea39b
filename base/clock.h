// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

namespace crosstalk {

/// CLOCK_MONOTONIC in nanoseconds, by libc: for the host's side (in a target: collectors/in_target/sys/system_calls.h).
[[nodiscard]] inline std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace crosstalk
