// SPDX-License-Identifier: Apache-2.0
// A thread's waits for other threads so far, by kind and call site. The thread keeps the sums in the arena (arena.h)
// and the recorder may read them at any time, so none is lost if a process is killed.
//
// A thread writes its own sums. While it waits at the end of a parallel region, the thread of its team that comes last
// writes them. Fields are written one by one, so a reader may see a wait's time without its count.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profile/watch_settings.h"

namespace crosstalk::profile {

/// The kinds of waits. `all` is their sum: see docs/profile-schema.md, table thread_wait.
enum class WaitKind : std::uint8_t {
  all = 0,
  mutex = 1,      // and spin locks
  rwlock = 2,     //
  critical = 3,   // OpenMP: critical sections and locks
  barrier = 4,    // POSIX
  team = 5,       // OpenMP: barriers, also those that end loops and parallel regions
  condition = 6,  //
  semaphore = 7,  //
  futex = 8,      // by the system call itself, as far as syscall() makes it: C++20's atomics, latches, barriers
};
inline constexpr WaitKind last_wait_kind = WaitKind::futex;

/// The parts of a thread's time that it waits for other threads.
enum class WaitClass : std::uint8_t { lock = 0, barrier = 1, condition = 2 };
inline constexpr std::size_t wait_classes = 3;
[[nodiscard]] constexpr WaitClass class_of(WaitKind kind) {
  switch (kind) {
    case WaitKind::mutex:
    case WaitKind::rwlock:
    case WaitKind::critical:
      return WaitClass::lock;
    case WaitKind::barrier:
    case WaitKind::team:
      return WaitClass::barrier;
    default:
      return WaitClass::condition;
  }
}

struct alignas(cache_line) ThreadWaits {
  /// The start of a kind of wait: the return address of the call, 56 bits, and the kind above them; 0: nothing.
  using Place = std::uint64_t;
  static constexpr unsigned kind_shift = 56;
  [[nodiscard]] static constexpr Place place_of(WaitKind kind, std::uint64_t site) {
    return static_cast<std::uint64_t>(kind) << kind_shift | (site & ((std::uint64_t{1} << kind_shift) - 1));
  }
  [[nodiscard]] static constexpr std::uint64_t site_of(Place place) {
    return place & ((std::uint64_t{1} << kind_shift) - 1);
  }
  [[nodiscard]] static constexpr std::uint8_t kind_number_of(Place place) {
    return static_cast<std::uint8_t>(place >> kind_shift);
  }

  static constexpr std::uint32_t places = 12;  // with a site
  static constexpr std::uint32_t sums = places + static_cast<std::uint32_t>(last_wait_kind);
  struct Sum {
    std::atomic<Place> place;  // set once, by compare-and-swap
    std::atomic<std::uint64_t> waited_ns;
    std::atomic<std::uint64_t> count;
  };
  /// First those of places, in the order of their first wait; then one of each kind for all places without room, site
  /// 0.
  Sum sum[sums];
  // The present wait:
  std::atomic<std::uint64_t> since_ns;  // CLOCK_MONOTONIC; 0: there is none
  std::atomic<Place> place;
  std::atomic<std::uint64_t> frame;     // the stack pointer in the function that waits: above it the wait is over
  std::atomic<std::uint64_t> measured;  // 1: the thread's waits are measured
};
static_assert(sizeof(ThreadWaits) == 8 * cache_line);

}  // namespace crosstalk::profile
