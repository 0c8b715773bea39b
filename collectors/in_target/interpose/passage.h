// SPDX-License-Identifier: Apache-2.0
// Who makes system calls of ours outside of handlers (where a thread begins or ends, say) is counted meanwhile, so that
// step_aside() can wait until nobody does.
#pragma once

#include <atomic>
#include <cstdint>

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
  static inline constinit std::atomic<std::uint32_t> inside_{0};
};

}  // namespace crosstalk::in_target
