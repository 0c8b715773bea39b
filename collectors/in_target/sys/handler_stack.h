// SPDX-License-Identifier: Apache-2.0
// Stacks for our signal handlers, one for each observed thread. The kernel has ours as the thread's alternate stack, so
// a signal of ours touches no byte of the target's stacks, however small they are. The target's own alternate stack is
// kept here, and its handlers are moved there (signals/alternate_stack.h).
//
// The stacks lie in mappings of 8 that are made as they are needed and kept. Each has a page below it that nobody may
// touch. A stack belongs to the thread that took it. Stacks of threads that ended without a notice are reclaimed when
// none is left. Signal-safe throughout.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/in_target/sys/signal_frame.h"

namespace crosstalk::in_target {

class HandlerStack {
 public:
  [[nodiscard]] AlternateStack bounds() const { return {low_, high_ - low_, 0}; }
  [[nodiscard]] std::uint64_t top() const { return high_; }

  /// Returns the alternate stack that the target believes in. Only its own thread calls this, handlers included.
  [[nodiscard]] const AlternateStack& target_stack() const { return target_[current_.load(std::memory_order_relaxed)]; }
  void set_target_stack(const AlternateStack& stack) {
    const std::uint32_t next = 1 - current_.load(std::memory_order_relaxed);
    target_[next] = stack;
    std::atomic_signal_fence(std::memory_order_release);  // a handler may come between
    current_.store(next, std::memory_order_relaxed);
  }

  /// True while a frame is copied to the target's stack: a fault is that stack's. Only its own thread uses this.
  std::atomic<bool> placing{false};

 private:
  friend class HandlerStacks;
  std::atomic<std::int32_t> owner_{0};  // thread id; 0: free
  std::atomic<std::uint32_t> current_{0};
  std::uint64_t low_ = 0, high_ = 0;
  AlternateStack target_[2];
};

/// Static storage, zero until used.
class HandlerStacks {
 public:
  /// A stack for the thread `tid` of process `pid`; null when there is no memory for one.
  HandlerStack* take(std::int32_t pid, std::int32_t tid);
  /// Frees a stack. No thread may run on it, nor have it as its alternate stack in the kernel.
  static void give(HandlerStack& stack) { stack.owner_.store(0, std::memory_order_release); }
  /// Frees all stacks, as give() does.
  void give_all() { after_fork(nullptr, 0); }
  /// In a forked child: all are free but `kept`, which may be null.
  void after_fork(HandlerStack* kept, std::int32_t tid);
  /// The stack that an address lies on, its upper end included; null when it is none of ours.
  HandlerStack* at(std::uint64_t address);

  static constexpr std::uint32_t in_a_block = 8;  // stacks are made so many at a time

 private:
  static constexpr std::uint64_t page = 4096;
  static constexpr std::uint64_t stack_bytes = 64 * 1024;  // with the page below
  static constexpr std::uint64_t block_bytes = in_a_block * stack_bytes;
  static constexpr std::uint32_t max_blocks = 512;

  HandlerStack* take_free(std::uint32_t blocks, std::int32_t tid);
  void reclaim(std::uint32_t blocks, std::int32_t pid);
  bool grow(std::uint32_t blocks);
  bool prepare(HandlerStack& stack, std::uint32_t index);
  [[nodiscard]] std::uint32_t blocks() const;

  std::atomic<std::uint64_t> block_[max_blocks];
  std::atomic<bool> exhausted_;
  HandlerStack stacks_[max_blocks * in_a_block];
};

HandlerStacks& handler_stacks();

}  // namespace crosstalk::in_target
