// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch/watch_slot.h"

namespace crosstalk::in_target {

bool WatchSlot::try_lock() {
  constexpr std::uint32_t patience = 200;
  for (std::uint32_t i = 0; i < patience; ++i) {
    std::uint32_t free = 0;
    if (lock.compare_exchange_weak(free, 1, std::memory_order_acquire)) {
      return true;
    }
    __builtin_ia32_pause();
  }
  return false;
}

void WatchSlot::forget() {
  lock.store(0, std::memory_order_relaxed);
  watch.store(0, std::memory_order_relaxed);
  shared = nullptr;
}

}  // namespace crosstalk::in_target
