// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

namespace crosstalk {

/// Time of a clock in nanoseconds, by libc. For the host only; in targets see collectors/in_target/sys/system_calls.h.
[[nodiscard]] inline std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}
[[nodiscard]] inline std::uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
/// Milliseconds since 1970, UTC.
[[nodiscard]] inline std::int64_t unix_ms() {
  constexpr std::uint64_t ns_in_ms = 1'000'000;
  return static_cast<std::int64_t>(clock_ns(CLOCK_REALTIME) / ns_in_ms);
}
/// CPU time of the calling thread, ns.
[[nodiscard]] inline std::uint64_t thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace crosstalk
