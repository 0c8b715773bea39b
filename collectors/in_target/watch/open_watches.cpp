// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch/open_watches.h"

#include "collectors/in_target/core/record_writer.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/processes/remote_events.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/watch/arming.h"
#include "collectors/in_target/watch/common_watches.h"
#include "collectors/in_target/watch/remote_arming.h"

namespace crosstalk::in_target {
namespace {

// Tells the board, or the one of all processes, and the budget if the line was exchanged.
void tell_of_exchange(const WatchSlot& slot, bool exchanged) {
  if (slot.identity.known) {
    cross_process_state().line_of(slot.identity.key()).judged(slot.identity.key(), exchanged);
  } else {
    board().judged(slot.line, exchanged);
  }
  if (!slot.suspected.load(std::memory_order_relaxed)) {
    runtime().budget.explored(exchanged);
  }
}

void charge_interruptions(WatchSlot& slot, ThreadState& self) {
  const std::uint64_t lost_ns = slot.interrupted_ns.load(std::memory_order_relaxed);
  slot.cost_ns.fetch_add(lost_ns, std::memory_order_relaxed);
  self.slot->handlers_ns.fetch_add(lost_ns, std::memory_order_relaxed);
  runtime().budget.spend(lost_ns);
  if (!slot.suspected.load(std::memory_order_relaxed)) {
    runtime().budget.explore(lost_ns);
  }
}

}  // namespace

void OpenWatches::start() {
  constexpr std::uint64_t first_guess_ns = 150'000;
  mean_cost_ns_.store(first_guess_ns, std::memory_order_relaxed);
}

void OpenWatches::forget() {
  for (WatchSlot& slot : slot_) {
    slot.forget();
  }
}

void OpenWatches::close(WatchSlot& slot, ThreadState& self, profile::CloseReason reason) {
  profile::WatchClose record;
  record.header.type = profile::RecordType::watch_close;
  record.time_ns = monotonic_ns();
  record.watch = slot.watch.load(std::memory_order_relaxed);
  record.reason = reason;
  record.traps = slot.progress().traps();
  const bool exchanged = slot.progress().exchanged();
  const bool ours = slot.shared == nullptr || end_common(slot, record.watch);
  disarm_all(slot);
  if (slot.shared != nullptr) {
    if (ours) {
      disarm_elsewhere(slot, record.watch);
    }
    release_remote_events(slot.index);
  }
  if (ours) {
    tell_of_exchange(slot, exchanged);
  }
  charge_interruptions(slot, self);
  const std::uint64_t mean = mean_cost_ns_.load(std::memory_order_relaxed);
  mean_cost_ns_.store(watch_policy::mean_with(mean, slot.cost_ns.load(std::memory_order_relaxed)),
                      std::memory_order_relaxed);
  slot.watch.store(0, std::memory_order_release);
  if (ours) {
    append(self, &record, sizeof record, nullptr, 0);
  }
}

void OpenWatches::close_if_open(WatchSlot& slot, ThreadState& self, std::uint32_t id, profile::CloseReason reason) {
  if (!slot.try_lock()) {
    return;
  }
  if (slot.watch.load(std::memory_order_relaxed) == id) {
    close(slot, self, reason);
  }
  slot.unlock();
}

bool OpenWatches::expire(ThreadState& self, std::uint64_t now_ns) {
  bool closed = false;
  for (WatchSlot& slot : slot_) {
    if (slot.watch.load(std::memory_order_relaxed) == 0 || !slot.progress().expired(now_ns) || !slot.try_lock()) {
      continue;
    }
    if (slot.watch.load(std::memory_order_relaxed) != 0 && slot.progress().expired(now_ns)) {
      close(slot, self, profile::CloseReason::horizon);
      closed = true;
    }
    slot.unlock();
  }
  return closed;
}

void OpenWatches::close_all(ThreadState& self, profile::CloseReason reason) {
  for (WatchSlot& slot : slot_) {
    if (slot.try_lock()) {
      if (slot.watch.load(std::memory_order_relaxed) != 0) {
        close(slot, self, reason);
      }
      slot.unlock();
    }
  }
}

void OpenWatches::charge(std::uint32_t event, std::uint64_t ns) {
  if (event / words_per_slot < watch_slots) {
    slot_[event / words_per_slot].cost_ns.fetch_add(ns, std::memory_order_relaxed);
  }
}

}  // namespace crosstalk::in_target
