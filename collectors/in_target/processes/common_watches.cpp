// SPDX-License-Identifier: Apache-2.0
// Watches that processes keep together: opening one for all, joining another's, and noticing that it is over.
#include <bit>

#include "collectors/in_target/processes/kick.h"
#include "collectors/in_target/processes/shared_maps.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/session/runtime.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/watch/watch_unit.h"

namespace crosstalk::in_target {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::uint64_t gathering_ns = 40'000;         // a running thread is signalled and armed in half of it
constexpr std::uint64_t abandoned_ns = 1'000'000'000;  // beyond its end; whoever was to close it is dead

// Who opens one holds this lock until it is published, some microseconds. A process that was killed there leaves it.
bool take_lock(SharedWatch& common, std::uint64_t now_ns) {
  std::uint64_t since = common.lock.load(relaxed);
  return (since == 0 || now_ns > since + abandoned_ns) &&
         common.lock.compare_exchange_strong(since, now_ns, std::memory_order_acquire);
}

}  // namespace

// The slot's lock is held.
bool WatchUnit::claim_common(Slot& slot, const ThreadState& self, const SharedLine& line, std::uint64_t now_ns) {
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
  common.joined.store(0, relaxed);
  common.armed.store(0, relaxed);
  for (auto& member : common.member) {
    member.store(0, relaxed);
  }
  common.member[0].store(self.number, relaxed);
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

// Waits a little for those who run: the opener does not touch the line meanwhile. Who does not run joins before it
// goes on.
void WatchUnit::gather(Slot& slot, const SharedLine& line, std::uint64_t now_ns) {
  const std::uint32_t called = kick_users(line, now_ns);
  const std::uint64_t until_ns = monotonic_ns() + gathering_ns;
  while (slot.shared->joined.load(std::memory_order_acquire) < called && monotonic_ns() < until_ns) {
    __builtin_ia32_pause();
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

// True for the one process that ends it. The others are told, so that no watchpoint stays armed.
bool WatchUnit::end_common(Slot& slot, std::uint32_t id) {
  SharedWatch& common = *slot.shared;
  std::uint32_t members[SharedWatch::max_members];
  for (std::uint32_t i = 0; i < SharedWatch::max_members; ++i) {
    members[i] = common.member[i].load(relaxed);
  }
  if (!common.watch.compare_exchange_strong(id, 0, std::memory_order_acq_rel)) {
    return false;
  }
  for (const std::uint32_t member : members) {
    kick(member);
  }
  return true;
}

// The slot's lock is held, and it is free.
void WatchUnit::take_part(Slot& slot, ThreadState& self, std::uint32_t id) {
  SharedWatch& common = *slot.shared;
  slot.cost_ns.store(0, relaxed);
  slot.interrupted_ns.store(0, relaxed);
  slot.opened_ns = monotonic_ns();
  slot.watch.store(id, std::memory_order_release);
  std::uint32_t armed = arm_others(slot, self, 0);
  if (self.watch_events.load(relaxed) != 0) {
    for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
      arm(slot, self, w, WatchMode::read_write);
    }
    ++armed;
  }
  common.armed.fetch_add(armed, relaxed);
  const std::uint32_t place = common.joined.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (place < SharedWatch::max_members) {
    common.member[place].store(self.number, std::memory_order_release);
  }
  slot.cost_ns.fetch_add(monotonic_ns() - slot.opened_ns, relaxed);
  if (common.watch.load(std::memory_order_seq_cst) != id) {  // who ended it may not have seen us
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
  if (slot.watch.load(relaxed) != 0) {  // room for what more than this process needs
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
  const bool same = common.watch.load(relaxed) == id;  // else what was read may be of two
  if (same) {
    take_part(slot, self, id);
  }
  unlock(slot);
  return same;
}

void WatchUnit::follow(ThreadState& self, std::uint64_t now_ns) {
  if (!sharing()) {
    return;
  }
  for (std::uint32_t i = 0; i < plan().slots; ++i) {
    Slot& slot = slot_[i];
    const std::uint32_t id = slot.watch.load(std::memory_order_acquire);
    if (id != 0 && is_over(slot, id)) {
      end_if_over(slot, self, id);
    }
    if (id != cross_process_state().watch[i].watch.load(relaxed)) {
      join(slot, self, now_ns);
    } else if (id != 0 && slot.shared->progress.runner() != self.number) {
      for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
        const std::uint32_t event = first_event(slot) + w;
        if (self.mode[event].load(relaxed) != static_cast<std::uint8_t>(WatchMode::read_write)) {
          arm(slot, self, w, WatchMode::read_write);
        }
      }
    }
  }
}

}  // namespace crosstalk::in_target
