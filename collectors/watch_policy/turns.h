// SPDX-License-Identifier: Apache-2.0
// Which thread's sample begins the next watch, where several have one.
//
// Clocks that go by the kernel's tick run out at the same moment on all processors. The thread whose processor handles
// its tick first would then find the debug registers free and the budget full each time, and the others never: what
// they consume would be missed whole. So a thread that has begun the latest watch leaves the next one to chance as long
// as another one has had a sample in vain.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/random.h"

namespace crosstalk::watch_policy {

/// Threads are told by number, from 1. Any of them may call anything at any time: at worst, a turn is missed.
class Turns {
 public:
  /// May a sample of `thread` begin a watch? False one time in two for the thread that has begun the latest one, while
  /// another is waiting.
  [[nodiscard]] bool may_begin(std::uint32_t thread, std::uint64_t& random) const {
    const std::uint32_t waiting = waiting_.load(std::memory_order_relaxed);
    const bool others_turn = waiting != 0 && waiting != thread && latest_.load(std::memory_order_relaxed) == thread;
    return !others_turn || (next_random(random) >> 63U) != 0;
  }
  /// It could not: no debug registers were free, or the budget did not allow it.
  void in_vain(std::uint32_t thread) { waiting_.store(thread, std::memory_order_relaxed); }
  void has_begun(std::uint32_t thread) {
    latest_.store(thread, std::memory_order_relaxed);
    if (waiting_.load(std::memory_order_relaxed) == thread) {
      waiting_.store(0, std::memory_order_relaxed);
    }
  }

 private:
  std::atomic<std::uint32_t> latest_{0}, waiting_{0};
};

}  // namespace crosstalk::watch_policy
