// SPDX-License-Identifier: Apache-2.0
// A barrier that spins (and yields), without a system call a meeting. Its own two lines are synchronisation and no
// data; programs name it in `sync`.
#pragma once

#include "workload.h"

namespace workload {

class Rendezvous {
 public:
  explicit Rendezvous(std::uint32_t threads) : threads_(threads) {}
  void meet() { meet(nullptr); }
  /// Meets; true for all if `deadline` had not passed for the last to arrive.
  bool meet_again(const Deadline& deadline) {
    meet(&deadline);
    return !over_;  // not written again before all have met again
  }

 private:
  void meet(const Deadline* deadline) {
    const std::uint32_t generation = __atomic_load_n(&generation_, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&arrived_, 1U, __ATOMIC_ACQ_REL) == threads_) {
      __atomic_store_n(&arrived_, 0U, __ATOMIC_RELAXED);
      if (deadline != nullptr) {
        over_ = deadline->passed();
      }
      __atomic_store_n(&generation_, generation + 1, __ATOMIC_RELEASE);
      return;
    }
    for (unsigned spins = 0; __atomic_load_n(&generation_, __ATOMIC_ACQUIRE) == generation;) {
      relax(spins, true);
    }
  }

  const std::uint32_t threads_;
  alignas(line_bytes) std::uint32_t arrived_ = 0;
  alignas(line_bytes) std::uint32_t generation_ = 0;
  bool over_ = false;
};

}  // namespace workload
