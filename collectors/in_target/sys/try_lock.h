// SPDX-License-Identifier: Apache-2.0
// A lock that nobody waits for, and that a forked child does not inherit.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {

/// A flag that a process holds, for one of its threads: a flag that a parent's thread held during a fork is free to the
/// child. Zero-initialised; signal-safe.
class ProcessFlag {
 public:
  bool try_take(std::int32_t pid) {
    std::int32_t holder = holder_.load(std::memory_order_relaxed);
    return holder != pid && holder_.compare_exchange_strong(holder, pid, std::memory_order_acquire);
  }
  [[nodiscard]] bool held_by(std::int32_t pid) const { return holder_.load(std::memory_order_seq_cst) == pid; }
  void give() { holder_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::int32_t> holder_{0};
};

/// Tries to take a flag, `tries` times at most, and gives it back at the end of the scope.
class TryLock {
 public:
  TryLock(ProcessFlag& flag, std::int32_t pid, int tries = 1) : flag_(flag) {
    for (int i = 0; i < tries && !held_; ++i) {
      held_ = flag.try_take(pid);
    }
  }
  ~TryLock() {
    if (held_) {
      flag_.give();
    }
  }
  TryLock(const TryLock&) = delete;
  TryLock& operator=(const TryLock&) = delete;
  [[nodiscard]] bool held() const { return held_; }

 private:
  ProcessFlag& flag_;
  bool held_ = false;
};

/// A flag that a thread holds while it forks, so that no other thread of the process holds it: the other's work would
/// stay unfinished for ever in the child. Several threads may fork at a time. To the child the flag is free.
class ForkHold {
 public:
  bool take(ProcessFlag& flag) {
    const bool taken = flag.try_take(kernel_process_id());
    if (taken) {
      holder_.store(kernel_thread_id(), std::memory_order_relaxed);
    }
    return taken;
  }
  /// If the calling thread holds it.
  void give(ProcessFlag& flag) {
    if (holder_.load(std::memory_order_relaxed) == kernel_thread_id()) {
      holder_.store(0, std::memory_order_relaxed);
      flag.give();
    }
  }

 private:
  std::atomic<std::int32_t> holder_{0};
};

}  // namespace crosstalk::in_target
