// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch/followed_watches.h"

#include "collectors/in_target/processes/remote_events.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/watch/arming.h"
#include "collectors/in_target/watch/common_watches.h"

namespace crosstalk::in_target {
namespace {

// The slot is free, and its lock is held. The opener has armed as many of this process's threads as it could.
void take_part(OpenWatches& watches, WatchSlot& slot, ThreadState& self, std::uint32_t id) {
  slot.cost_ns.store(0, std::memory_order_relaxed);
  slot.interrupted_ns.store(0, std::memory_order_relaxed);
  slot.opened_ns = monotonic_ns();
  slot.watch.store(id, std::memory_order_release);
  arm_others(slot, self, 0);
  arm_unarmed(slot, self);
  slot.cost_ns.fetch_add(monotonic_ns() - slot.opened_ns, std::memory_order_relaxed);
  if (slot.shared->watch.load(std::memory_order_seq_cst) != id) {  // the thread that ended it may not have seen us
    watches.close(slot, self, profile::CloseReason::stopped);
  }
}

// Joins the common watch of the slot's number, if there is one and its line is mapped here.
void join(OpenWatches& watches, WatchSlot& slot, ThreadState& self, std::uint64_t now_ns) {
  const CommonWatch found = find_common(slot.index, now_ns);
  if (found.id == 0 || !slot.try_lock()) {
    return;
  }
  if (slot.watch.load(std::memory_order_relaxed) != 0) {  // makes room: a common watch serves several processes
    watches.close(slot, self, profile::CloseReason::stopped);
  }
  if (adopt_common(slot, found)) {
    take_part(watches, slot, self, found.id);
  }
  slot.unlock();
}

}  // namespace

void end_if_over(OpenWatches& watches, WatchSlot& slot, ThreadState& self, std::uint32_t id) {
  if (!slot.try_lock()) {
    return;
  }
  if (slot.watch.load(std::memory_order_relaxed) == id && is_over(slot, id)) {
    watches.close(slot, self, profile::CloseReason::stopped);
  }
  slot.unlock();
}

void follow_one(OpenWatches& watches, WatchSlot& slot, ThreadState& self, std::uint64_t now_ns) {
  const std::uint32_t id = slot.watch.load(std::memory_order_acquire);
  if (id != 0 && is_over(slot, id)) {
    end_if_over(watches, slot, self, id);
  }
  if (slot.watch.load(std::memory_order_relaxed) !=
      cross_process_state().watch[slot.index].watch.load(std::memory_order_relaxed)) {
    join(watches, slot, self, now_ns);
  } else if (id == 0 && holds_remote_events(slot.index) && slot.try_lock()) {
    if (slot.watch.load(std::memory_order_relaxed) == 0) {
      release_remote_events(slot.index);
    }
    slot.unlock();
  }
}

void follow_all(OpenWatches& watches, std::uint32_t slots, ThreadState& self, std::uint64_t now_ns) {
  if (!sharing()) {
    return;
  }
  for (WatchSlot& slot : watches.slots().first(slots)) {
    follow_one(watches, slot, self, now_ns);
    const std::uint32_t id = slot.watch.load(std::memory_order_acquire);
    if (id != 0 && id == cross_process_state().watch[slot.index].watch.load(std::memory_order_relaxed) &&
        slot.shared->progress.runner() != self.number) {
      arm_unarmed(slot, self);
    }
  }
}

}  // namespace crosstalk::in_target
