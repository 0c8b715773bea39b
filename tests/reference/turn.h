// SPDX-License-Identifier: Apache-2.0
// One thread of the program runs at a time, and the others wait for their turn: the order of counting is then the order
// of the accesses, and counting needs no locks.
//
// A thread that has the turn and sleeps in the emulator (for example to stop all threads, which waits for those that
// wait here) loses it to the first waiting thread, so that no thread waits for ever. Until it notices, at its next
// access, two threads run; stolen() counts that.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>

namespace crosstalk::reference {

class Turn {
 public:
  /// A thread's place. Must outlive the Turn's use of it; one thread at a time uses it.
  class Seat {
    friend class Turn;
    std::atomic<bool> busy{false};
    std::atomic<std::uint32_t> wakes{0};
    std::atomic<pid_t> tid{0};
  };

  /// Returns when `me` has the turn, which it keeps until leave(). Waits in line. False, and neither turn nor leave(),
  /// after end().
  [[nodiscard]] bool enter(Seat& me) {
    for (;;) {
      me.busy.store(true, std::memory_order_seq_cst);  // before the look at holder_: see steal()
      if (holder_.load(std::memory_order_seq_cst) == &me) {
        return true;
      }
      me.busy.store(false, std::memory_order_release);
      if (!wait_in_line(me)) {
        return false;
      }
    }
  }
  /// Ends what enter() began. The turn stays with `me`.
  static void leave(Seat& me) { me.busy.store(false, std::memory_order_release); }

  /// Gives the turn, if `me` has it, to the thread that has waited longest; keeps it if none waits.
  void pass(Seat& me);
  /// As pass(), and without it `me` has no turn: before it blocks or ends.
  void release(Seat& me);
  /// Ends all turns. Called by the thread that has the turn.
  void end();

  /// How often the turn was taken from a thread that slept.
  [[nodiscard]] std::uint64_t stolen() const { return stolen_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] bool wait_in_line(Seat& me);
  bool give_to_next();  // with mutex_ held
  bool steal(Seat& me, Seat* from);

  std::atomic<Seat*> holder_{nullptr};
  std::mutex mutex_;  // of waiting_, and of changes of holder_
  std::deque<Seat*> waiting_;
  std::atomic<std::uint64_t> stolen_{0};
  std::atomic<bool> ended_{false};
};

}  // namespace crosstalk::reference
