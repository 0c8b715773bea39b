// SPDX-License-Identifier: Apache-2.0
// A barrier that spins (and yields): where threads meet without a system call a meeting. Its own two lines are
// synchronisation and no data; programs name it in `sync`.
#pragma once

#include "workload.h"

namespace workload {

class Rendezvous {
 public:
  explicit Rendezvous(std::uint32_t threads) : threads_(threads) {}
  void meet() {
    const std::uint32_t generation = __atomic_load_n(&generation_, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&arrived_, 1U, __ATOMIC_ACQ_REL) == threads_) {
      __atomic_store_n(&arrived_, 0U, __ATOMIC_RELAXED);
      __atomic_store_n(&generation_, generation + 1, __ATOMIC_RELEASE);
      return;
    }
    for (unsigned spins = 0; __atomic_load_n(&generation_, __ATOMIC_ACQUIRE) == generation;) {
      relax(spins, true);
    }
  }

 private:
  const std::uint32_t threads_;
  alignas(line_bytes) std::uint32_t arrived_ = 0;
  alignas(line_bytes) std::uint32_t generation_ = 0;
};

}  // namespace workload
