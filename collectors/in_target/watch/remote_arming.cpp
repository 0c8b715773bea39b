// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch/remote_arming.h"

#include <errno.h>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/processes/remote_events.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/watch_policy/interruption.h"
#include "collectors/watch_policy/selection.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint32_t max_uses = 64;  // processes whose threads are armed at a time
constexpr auto live_slot = static_cast<std::uint32_t>(profile::SlotState::live);

// Threads take the lowest slot that is free, so none beyond the first that never was in use is.
std::uint32_t slots_in_use() {
  const Runtime& r = runtime();
  std::uint32_t extent = 0;
  while (extent < r.slot_count) {
    const profile::ThreadSlot& slot = *r.arena.slot(extent);
    if (slot.generation == 0 &&
        slot.state.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(profile::SlotState::free)) {
      break;
    }
    ++extent;
  }
  return extent;
}

// Adds the time that moving watchpoints since `begin_ns` has cost their thread.
void charge_interruption(WatchSlot& slot, std::uint64_t begin_ns) {
  slot.interrupted_ns.fetch_add(watch_policy::lost_by_interruption(monotonic_ns() - begin_ns),
                                std::memory_order_relaxed);
}

// Arms both words of the line in a thread of another process, at its address `line`. False: it could not be armed.
bool arm_remote(WatchSlot& slot, profile::ThreadSlot& thread, std::uint64_t line) {
  const std::uint64_t begin_ns = monotonic_ns();
  long result = 0;
  std::uint32_t armed = 0;
  for (std::uint32_t w = 0; w < slot.choice.words && result >= 0; ++w) {
    const profile::WatchWord& piece = slot.choice.word[w];
    result = arm_remote_thread(thread, slot.first_event() + w, slot.watch.load(std::memory_order_relaxed),
                               {line + piece.offset, piece.length, WatchMode::read_write});
    armed += result >= 0 ? 1 : 0;
  }
  for (std::uint32_t w = 0; w < armed && result < 0; ++w) {  // all words, or none
    set_held_event(thread.watchpoints, slot.first_event() + w, {});
  }
  charge_interruption(slot, begin_ns);
  if (result < 0) {  // its own process may arm it
    std::uint32_t id = slot.watch.load(std::memory_order_relaxed);
    thread.watchpoints.watch[slot.index].compare_exchange_strong(id, 0, std::memory_order_seq_cst);
  }
  if (result == -EACCES || result == -EPERM) {
    remote_events_refused();
  }
  return result >= 0;
}

}  // namespace

ArmedThreads arm_elsewhere(WatchSlot& slot, ThreadState& self, std::uint32_t partner) {
  SharedUse uses[max_uses];
  const std::uint32_t count = find_uses(slot.identity, uses, max_uses);
  const std::uint32_t extent = count == 0 ? 0 : slots_in_use();
  const auto line_in = [&](std::uint32_t number) {  // 0: the thread is none of those processes'
    const profile::ThreadSlot& thread = *runtime().arena.slot(number - 1);
    const std::int32_t pid = thread.pid.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (uses[i].pid == pid && thread.state.load(std::memory_order_acquire) == live_slot) {
        return uses[i].line;
      }
    }
    return std::uint64_t{0};
  };
  ArmedThreads threads;
  for (std::uint32_t number = 1; number <= extent; ++number) {
    threads.others += line_in(number) != 0 ? 1 : 0;
  }
  const auto arm_one = [&](std::uint32_t number) {
    const std::uint64_t line = line_in(number);
    threads.armed += line != 0 && arm_remote(slot, *runtime().arena.slot(number - 1), line) ? 1 : 0;
  };
  const bool has_partner = partner != 0 && partner <= extent && line_in(partner) != 0;
  if (has_partner) {
    arm_one(partner);
  }
  watch_policy::ArmedDraw draw(threads.others, has_partner);
  for (std::uint32_t number = 1; number <= extent && !draw.complete(); ++number) {
    if ((!has_partner || number != partner) && line_in(number) != 0 && draw.take(self.random)) {
      arm_one(number);
    }
  }
  return threads;
}

void restore_elsewhere(WatchSlot& slot, std::uint32_t runner) {
  if (runner == 0 || runner > runtime().slot_count) {
    return;
  }
  profile::ThreadWatchpoints& thread = runtime().arena.slot(runner - 1)->watchpoints;
  if (thread.watch[slot.index].load(std::memory_order_relaxed) != slot.watch.load(std::memory_order_relaxed)) {
    return;
  }
  const std::uint64_t begin_ns = monotonic_ns();
  for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
    const std::uint32_t event = slot.first_event() + w;
    const bool armed =
        thread.mode[event].load(std::memory_order_relaxed) == static_cast<std::uint8_t>(WatchMode::read_write);
    if (!armed && event < thread.words.load(std::memory_order_relaxed)) {
      set_held_event(
          thread, event,
          {thread.address[event].load(std::memory_order_relaxed), slot.choice.word[w].length, WatchMode::read_write});
    }
  }
  charge_interruption(slot, begin_ns);
}

void disarm_elsewhere(WatchSlot& slot, std::uint32_t id) {
  const Runtime& r = runtime();
  for (std::uint32_t i = 0, extent = slots_in_use(); i < extent; ++i) {
    profile::ThreadSlot& thread = *r.arena.slot(i);
    profile::ThreadWatchpoints& watchpoints = thread.watchpoints;
    std::uint32_t armed_for = watchpoints.watch[slot.index].load(std::memory_order_relaxed);
    if (thread.pid.load(std::memory_order_relaxed) == r.pid || armed_for != id) {
      continue;
    }
    for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
      const std::uint32_t event = slot.first_event() + w;
      if (watchpoints.mode[event].load(std::memory_order_relaxed) != static_cast<std::uint8_t>(WatchMode::off)) {
        set_held_event(watchpoints, event, {});
      }
    }
    watchpoints.watch[slot.index].compare_exchange_strong(armed_for, 0, std::memory_order_seq_cst);
  }
}

void renew_events_elsewhere(std::span<WatchSlot> slots) {
  constexpr int tries = 100;  // of a watch that is being opened or closed
  for (WatchSlot& slot : slots) {
    for (int i = 0; i < tries; ++i) {
      if (slot.try_lock()) {
        forgo_remote_events(slot.index);
        slot.unlock();
        break;
      }
      system_call(SYS_sched_yield);
    }
  }
}

}  // namespace crosstalk::in_target
