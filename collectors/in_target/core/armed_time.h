// SPDX-License-Identifier: Apache-2.0
// Measures how long each watchpoint of a thread was armed. Each move of an event is noted, in this process or in
// another (profile::ThreadWatchpoints), so the thread itself knows all that was armed on it. Safe from any thread; two
// that move one event at the same time may lose or add the time between them.
#pragma once

#include <array>
#include <cstdint>

#include "collectors/in_target/core/thread_state.h"

namespace crosstalk::in_target {

/// The event is set to `mode` at `now_ns` (CLOCK_MONOTONIC).
inline void note_mode_at(profile::ThreadWatchpoints& thread, std::uint32_t event, WatchMode mode,
                         std::uint64_t now_ns) {
  thread.mode[event].store(static_cast<std::uint8_t>(mode), std::memory_order_relaxed);
  std::atomic<std::uint64_t>& since = thread.armed_since_ns[event];
  if (mode != WatchMode::off) {
    std::uint64_t off = 0;
    since.compare_exchange_strong(off, now_ns, std::memory_order_relaxed);
  } else if (const std::uint64_t begin = since.exchange(0, std::memory_order_relaxed); begin != 0 && begin < now_ns) {
    thread.armed_ns[event].fetch_add(now_ns - begin, std::memory_order_relaxed);
  }
}

using ArmedTimes = std::array<std::uint64_t, max_words>;

/// How long each event has been armed up to now.
inline ArmedTimes armed_times(const profile::ThreadWatchpoints& thread, std::uint64_t now_ns) {
  ArmedTimes times{};
  for (std::uint32_t event = 0; event < max_words; ++event) {
    const std::uint64_t since = thread.armed_since_ns[event].load(std::memory_order_relaxed);
    times[event] =
        thread.armed_ns[event].load(std::memory_order_relaxed) + (since != 0 && since < now_ns ? now_ns - since : 0);
  }
  return times;
}

}  // namespace crosstalk::in_target
