// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace crosstalk::watch_policy {

/// Returns the time that moving a watchpoint has cost its thread, from how long the move took. If the thread runs on
/// another processor, an interrupt moves the watchpoint: slow, and three quarters of the time are the thread's loss,
/// too (measured with two threads that count). If the thread sleeps, or is the caller, the move is quick and costs it
/// nothing.
[[nodiscard]] constexpr std::uint64_t lost_by_interruption(std::uint64_t took_ns) {
  constexpr std::uint64_t quick_ns = 18'000;
  constexpr std::uint64_t descheduled_ns = 200'000;  // the caller itself was away
  return took_ns < quick_ns || took_ns > descheduled_ns ? 0 : took_ns / 4 * 3;
}

}  // namespace crosstalk::watch_policy
