// SPDX-License-Identifier: Apache-2.0
// The threads that were found by looking (found_threads.h), each with its timer. Signal-safe throughout.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace crosstalk::in_target {

/// A found thread has one for as long as it lives.
struct Found {
  std::atomic<std::int32_t> tid;    // 0: free
  std::atomic<std::int32_t> timer;  // id + 1; 0: it gets none, or has had its own
  std::uint32_t look = 0;           // in which it was last seen
  bool settled = false;             // it is known whether it gets one
};
using FoundTable = std::array<Found, 1024>;

FoundTable& found_table();
/// The entry of a thread; of 0: a free one. Null: there is none.
Found* find_found(std::int32_t tid);
void drop_timer(Found& found);

/// Deletes the timer that was to find the thread, which is observed now.
void forget_found_thread(std::int32_t tid);
/// Deletes all timers of found threads.
void forget_found_threads();
/// Forgets all of them in a forked child, which has none of these threads and timers.
void forget_found_timers();

}  // namespace crosstalk::in_target
