// SPDX-License-Identifier: Apache-2.0
// Counts the threads that make system calls of ours outside of handlers (when a thread begins or ends, say), so that
// step_aside() can wait until none does. Such code computes in a floating-point state of its own.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/in_target/sys/float_state.h"

namespace crosstalk::in_target {

class Passage {
 public:
  Passage() { inside_.fetch_add(1, std::memory_order_seq_cst); }
  ~Passage() { inside_.fetch_sub(1, std::memory_order_release); }
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;
  static bool anybody() { return inside_.load(std::memory_order_seq_cst) != 0; }
  /// In a forked child, whose other threads are not there.
  static void after_fork() { inside_.store(0, std::memory_order_relaxed); }

 private:
  OwnFloatState float_state_;
  static inline constinit std::atomic<std::uint32_t> inside_{0};
};

}  // namespace crosstalk::in_target
