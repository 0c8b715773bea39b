// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace crosstalk::watch_policy {

/// What moving a watchpoint has cost the thread that it belongs to, from how long it took. That of a thread that runs
/// on another processor is moved there, by an interrupt: slow, and three quarters of the time are its loss too
/// (measured with two threads that count). That of one that sleeps, or of the caller, is quick and costs it nothing.
[[nodiscard]] constexpr std::uint64_t lost_by_interruption(std::uint64_t took_ns) {
  constexpr std::uint64_t quick_ns = 18'000;
  constexpr std::uint64_t descheduled_ns = 200'000;  // the caller itself was away
  return took_ns < quick_ns || took_ns > descheduled_ns ? 0 : took_ns / 4 * 3;
}

}  // namespace crosstalk::watch_policy
