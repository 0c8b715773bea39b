// SPDX-License-Identifier: Apache-2.0
// Watches that processes keep together: opening one for all, arming the others' threads, joining another's,
// and noticing that it is over.
#include <errno.h>

#include <bit>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/processes/remote_events.h"
#include "collectors/in_target/processes/shared_maps.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/watch/watch_unit.h"

namespace crosstalk::in_target {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::uint32_t max_uses = 64;  // processes whose threads are armed at a time
constexpr auto live_slot = static_cast<std::uint32_t>(profile::SlotState::live);
constexpr std::uint64_t abandoned_ns = 1'000'000'000;  // beyond its end; the process that was to close it is dead

// A thread that opens a watch holds this lock until the watch is published, some microseconds. If its process is killed
// meanwhile, the lock counts as abandoned after a time.
bool take_lock(SharedWatch& common, std::uint64_t now_ns) {
  std::uint64_t since = common.lock.load(relaxed);
  return (since == 0 || now_ns > since + abandoned_ns) &&
         common.lock.compare_exchange_strong(since, now_ns, std::memory_order_acquire);
}

// Threads take the lowest slot that is free, so none beyond the first that never was in use is.
std::uint32_t slots_in_use() {
  const Runtime& r = runtime();
  std::uint32_t extent = 0;
  while (extent < r.slot_count) {
    const profile::ThreadSlot& slot = *r.arena.slot(extent);
    if (slot.generation == 0 && slot.state.load(relaxed) == static_cast<std::uint32_t>(profile::SlotState::free)) {
      break;
    }
    ++extent;
  }
  return extent;
}

}  // namespace

// The slot's lock is held.
bool WatchUnit::claim_common(Slot& slot, const SharedLine& line, std::uint64_t now_ns) {
  SharedWatch& common = cross_process_state().watch[&slot - slot_];
  std::uint32_t old = common.watch.load(std::memory_order_acquire);
  if ((old != 0 && now_ns < common.progress.deadline_ns() + abandoned_ns) || !take_lock(common, now_ns)) {
    return false;
  }
  if (common.watch.load(relaxed) != old || (old != 0 && !common.watch.compare_exchange_strong(old, 0))) {
    common.lock.store(0, std::memory_order_release);
    return false;
  }
  common.device.store(line.device, relaxed);
  common.inode.store(line.inode, relaxed);
  common.file_offset.store(line.file_offset, relaxed);
  slot.shared = &common;
  return true;
}

// From here on others may join.
void WatchUnit::publish_common(Slot& slot) {
  SharedWatch& common = *slot.shared;
  common.suspected.store(slot.suspected.load(relaxed) ? 1 : 0, relaxed);
  common.words.store(slot.choice.words, relaxed);
  for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
    common.word[w].store(std::bit_cast<std::uint64_t>(slot.choice.word[w]), relaxed);
  }
  common.watch.store(slot.watch.load(relaxed), std::memory_order_release);
  common.lock.store(0, std::memory_order_release);
}

// Arms both words of the line in a thread of another process, at its address `line`. False: it could not be armed.
bool WatchUnit::arm_remote(Slot& slot, profile::ThreadSlot& thread, std::uint64_t line) {
  const std::uint64_t begin_ns = monotonic_ns();
  long result = 0;
  std::uint32_t armed = 0;
  for (std::uint32_t w = 0; w < slot.choice.words && result >= 0; ++w) {
    const profile::WatchWord& piece = slot.choice.word[w];
    result = arm_remote_thread(thread, first_event(slot) + w, slot.watch.load(relaxed),
                               {line + piece.offset, piece.length, WatchMode::read_write});
    armed += result >= 0 ? 1 : 0;
  }
  for (std::uint32_t w = 0; w < armed && result < 0; ++w) {  // all words, or none
    set_held_event(thread.watchpoints, first_event(slot) + w, {});
  }
  slot.interrupted_ns.fetch_add(lost_by_interruption(monotonic_ns() - begin_ns), relaxed);
  if (result < 0) {  // its own process may arm it
    std::uint32_t id = slot.watch.load(relaxed);
    thread.watchpoints.watch[&slot - slot_].compare_exchange_strong(id, 0, std::memory_order_seq_cst);
  }
  if (result == -EACCES || result == -EPERM) {
    remote_events_refused();
  }
  return result >= 0;
}

// The partner and others, drawn among all that are there.
WatchUnit::Threads WatchUnit::arm_elsewhere(Slot& slot, ThreadState& self, std::uint32_t partner) {
  SharedUse uses[max_uses];
  const std::uint32_t count = find_uses(slot.identity, uses, max_uses);
  const std::uint32_t extent = count == 0 ? 0 : slots_in_use();
  const auto line_in = [&](std::uint32_t number) {  // 0: the thread is none of those processes'
    const profile::ThreadSlot& thread = *runtime().arena.slot(number - 1);
    const std::int32_t pid = thread.pid.load(relaxed);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (uses[i].pid == pid && thread.state.load(std::memory_order_acquire) == live_slot) {
        return uses[i].line;
      }
    }
    return std::uint64_t{0};
  };
  Threads threads;
  for (std::uint32_t number = 1; number <= extent; ++number) {
    threads.live += line_in(number) != 0 ? 1 : 0;
  }
  const auto arm_one = [&](std::uint32_t number) {
    const std::uint64_t line = line_in(number);
    threads.armed += line != 0 && arm_remote(slot, *runtime().arena.slot(number - 1), line) ? 1 : 0;
  };
  const bool has_partner = partner != 0 && partner <= extent && line_in(partner) != 0;
  if (has_partner) {
    arm_one(partner);
  }
  watch_policy::ArmedDraw draw(threads.live, has_partner);
  for (std::uint32_t number = 1; number <= extent && !draw.complete(); ++number) {
    if ((!has_partner || number != partner) && line_in(number) != 0 && draw.take(self.random)) {
      arm_one(number);
    }
  }
  return threads;
}

// The thread has lost the line: its next access is of interest again.
void WatchUnit::restore_remote(Slot& slot, std::uint32_t runner) {
  if (runner == 0 || runner > runtime().slot_count) {
    return;
  }
  profile::ThreadWatchpoints& thread = runtime().arena.slot(runner - 1)->watchpoints;
  if (thread.watch[&slot - slot_].load(relaxed) != slot.watch.load(relaxed)) {
    return;
  }
  const std::uint64_t begin_ns = monotonic_ns();
  for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
    const std::uint32_t event = first_event(slot) + w;
    const bool armed = thread.mode[event].load(relaxed) == static_cast<std::uint8_t>(WatchMode::read_write);
    if (!armed && event < thread.words.load(relaxed)) {
      set_held_event(thread, event,
                     {thread.address[event].load(relaxed), slot.choice.word[w].length, WatchMode::read_write});
    }
  }
  slot.interrupted_ns.fetch_add(lost_by_interruption(monotonic_ns() - begin_ns), relaxed);
}

// Their processes need not notice that the watch is over.
void WatchUnit::disarm_elsewhere(Slot& slot, std::uint32_t id) {
  const Runtime& r = runtime();
  for (std::uint32_t i = 0, extent = slots_in_use(); i < extent; ++i) {
    profile::ThreadSlot& thread = *r.arena.slot(i);
    profile::ThreadWatchpoints& watchpoints = thread.watchpoints;
    std::uint32_t armed_for = watchpoints.watch[&slot - slot_].load(relaxed);
    if (thread.pid.load(relaxed) == r.pid || armed_for != id) {
      continue;
    }
    for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
      const std::uint32_t event = first_event(slot) + w;
      if (watchpoints.mode[event].load(relaxed) != static_cast<std::uint8_t>(WatchMode::off)) {
        set_held_event(watchpoints, event, {});
      }
    }
    watchpoints.watch[&slot - slot_].compare_exchange_strong(armed_for, 0, std::memory_order_seq_cst);
  }
}

bool WatchUnit::is_over(const Slot& slot, std::uint32_t id) {
  return slot.shared != nullptr && slot.shared->watch.load(std::memory_order_acquire) != id;
}

void WatchUnit::end_if_over(Slot& slot, ThreadState& self, std::uint32_t id) {
  if (!try_lock(slot)) {
    return;
  }
  if (slot.watch.load(relaxed) == id && is_over(slot, id)) {
    close(slot, self, profile::CloseReason::stopped);
  }
  unlock(slot);
}

// True for the one process that ends it.
bool WatchUnit::end_common(Slot& slot, std::uint32_t id) {
  return slot.shared->watch.compare_exchange_strong(id, 0, std::memory_order_acq_rel);
}

void WatchUnit::arm_unarmed(Slot& slot, ThreadState& self) {
  for (std::uint32_t w = 0; w < slot.choice.words && self.watch_events.load(relaxed) != 0; ++w) {
    const std::uint32_t event = first_event(slot) + w;
    if (self.watchpoints->mode[event].load(relaxed) != static_cast<std::uint8_t>(WatchMode::read_write)) {
      arm(slot, self, w, WatchMode::read_write);
    }
  }
}

// The slot is free, and its lock is held. The opener has armed as many of this process's threads as it could.
void WatchUnit::take_part(Slot& slot, ThreadState& self, std::uint32_t id) {
  slot.cost_ns.store(0, relaxed);
  slot.interrupted_ns.store(0, relaxed);
  slot.opened_ns = monotonic_ns();
  slot.watch.store(id, std::memory_order_release);
  arm_others(slot, self, 0);
  arm_unarmed(slot, self);
  slot.cost_ns.fetch_add(monotonic_ns() - slot.opened_ns, relaxed);
  if (slot.shared->watch.load(std::memory_order_seq_cst) != id) {  // the thread that ended it may not have seen us
    close(slot, self, profile::CloseReason::stopped);
  }
}

// Joins the common watch of the slot's number, if there is one and its line is mapped here.
bool WatchUnit::join(Slot& slot, ThreadState& self, std::uint64_t now_ns) {
  SharedWatch& common = cross_process_state().watch[&slot - slot_];
  const std::uint32_t id = common.watch.load(std::memory_order_acquire);
  if (id == 0 || common.progress.expired(now_ns)) {
    return false;
  }
  SharedLine line;
  line.device = common.device.load(relaxed);
  line.inode = common.inode.load(relaxed);
  line.file_offset = common.file_offset.load(relaxed);
  line.known = line.others = true;
  const std::uint32_t words = common.words.load(relaxed);
  const std::uint64_t address = shared_maps().address_of(line.device, line.inode, line.file_offset);
  if (address == 0 || words == 0 || words > words_per_slot || !try_lock(slot)) {
    return false;
  }
  if (slot.watch.load(relaxed) != 0) {  // makes room: a common watch serves several processes
    close(slot, self, profile::CloseReason::stopped);
  }
  slot.shared = &common;
  slot.identity = line;
  slot.line = address;
  slot.choice.words = words;
  for (std::uint32_t w = 0; w < words; ++w) {
    slot.choice.word[w] = std::bit_cast<profile::WatchWord>(common.word[w].load(relaxed));
  }
  slot.suspected.store(common.suspected.load(relaxed) != 0, relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  const bool same = common.watch.load(relaxed) == id;  // else the values may be of two watches
  if (same) {
    take_part(slot, self, id);
  }
  unlock(slot);
  return same;
}

// Leaves the watch of the slot if it is over, and joins the one that there is by now.
void WatchUnit::follow_one(Slot& slot, ThreadState& self, std::uint64_t now_ns) {
  const std::uint32_t id = slot.watch.load(std::memory_order_acquire);
  if (id != 0 && is_over(slot, id)) {
    end_if_over(slot, self, id);
  }
  const auto index = static_cast<std::uint32_t>(&slot - slot_);
  if (slot.watch.load(relaxed) != cross_process_state().watch[index].watch.load(relaxed)) {
    join(slot, self, now_ns);
  } else if (id == 0 && holds_remote_events(index) && try_lock(slot)) {
    if (slot.watch.load(relaxed) == 0) {
      release_remote_events(index);
    }
    unlock(slot);
  }
}

void WatchUnit::follow(ThreadState& self, std::uint64_t now_ns) {
  if (!sharing()) {
    return;
  }
  for (std::uint32_t i = 0; i < plan().slots; ++i) {
    Slot& slot = slot_[i];
    follow_one(slot, self, now_ns);
    const std::uint32_t id = slot.watch.load(std::memory_order_acquire);
    if (id != 0 && id == cross_process_state().watch[i].watch.load(relaxed) &&
        slot.shared->progress.runner() != self.number) {
      arm_unarmed(slot, self);
    }
  }
}

}  // namespace crosstalk::in_target
