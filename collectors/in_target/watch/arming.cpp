// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch/arming.h"

#include <errno.h>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/watch/admission.h"
#include "collectors/in_target/watch/watch_events.h"
#include "collectors/in_target/watch/watch_messages.h"
#include "collectors/watch_policy/interruption.h"
#include "collectors/watch_policy/selection.h"

namespace crosstalk::in_target {
namespace {

// Our handler's own frames may lie on a thread's stack below its present use, and before 5.19 the kernel kills a thread
// that hits a watchpoint with SIGTRAP blocked.
bool may_watch(const ThreadState& thread, std::uint32_t event, std::uint64_t address) {
  return event < thread.watch_events.load(std::memory_order_acquire) &&
         (address < thread.stack_low || address >= thread.stack_high);
}

void note_move(WatchSlot& slot, ThreadState& thread, std::uint64_t took_ns, long result) {
  slot.interrupted_ns.fetch_add(watch_policy::lost_by_interruption(took_ns), std::memory_order_relaxed);
  const bool kept = thread.on_demand.load(std::memory_order_relaxed) == 0;
  if (kept && (result == -EBADF || result == -ENOTTY)) {  // the target closed our descriptors
    set_watch_events(thread, 0);
    descriptors_closed();
  }
}

// Arms a thread for a watch that is being set up; opens an event if necessary. False: the thread cannot be armed for
// it.
bool arm(WatchSlot& slot, ThreadState& thread, std::uint32_t word, WatchMode mode) {
  const std::uint32_t event = slot.first_event() + word;
  const profile::WatchWord& piece = slot.choice.word[word];
  const std::uint64_t address = slot.line + piece.offset;
  if (!may_watch(thread, event, address)) {
    return false;
  }
  thread.watchpoints->watch[slot.index].store(slot.watch.load(std::memory_order_relaxed), std::memory_order_seq_cst);
  const std::uint64_t begin = monotonic_ns();
  const long result = demand_event(thread, event, {address, piece.length, mode});
  note_move(slot, thread, monotonic_ns() - begin, result);
  return result >= 0;
}

void disarm(WatchSlot& slot, ThreadState& thread, std::uint32_t word) {
  const std::uint64_t begin = monotonic_ns();
  const long result = dismiss_event(thread, slot.first_event() + word);
  note_move(slot, thread, monotonic_ns() - begin, result);
}

// All words of the watch, or none: a thread that is armed for a part of it would look as if it had left the rest alone.
bool arm_all(WatchSlot& slot, ThreadState& thread) {
  std::uint32_t armed = 0;
  while (armed < slot.choice.words && arm(slot, thread, armed, WatchMode::read_write)) {
    ++armed;
  }
  if (armed == slot.choice.words) {
    return true;
  }
  for (std::uint32_t w = 0; w < armed; ++w) {
    disarm(slot, thread, w);
  }
  std::uint32_t id = slot.watch.load(std::memory_order_relaxed);
  thread.watchpoints->watch[slot.index].compare_exchange_strong(id, 0, std::memory_order_seq_cst);
  return false;
}

// By the process that has opened the watch, or another thread of this one.
bool is_armed_for(const WatchSlot& slot, const ThreadState& thread) {
  return slot.shared != nullptr && thread.watchpoints->watch[slot.index].load(std::memory_order_seq_cst) ==
                                       slot.watch.load(std::memory_order_relaxed);
}

}  // namespace

ThreadState* thread_of(std::uint32_t number) {
  const Runtime& r = runtime();
  if (number == 0 || number > r.slot_count) {
    return nullptr;
  }
  const profile::ThreadSlot& slot = *r.arena.slot(number - 1);
  return slot.pid.load(std::memory_order_relaxed) == r.pid ? registry().find(slot.tid.load(std::memory_order_relaxed))
                                                           : nullptr;
}

void arm_sampled(WatchSlot& slot, ThreadState& self, const watch_policy::SampledAccess& access) {
  for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
    arm(slot, self, w,
        watch_policy::first_mode(access, w));  // even if it is off: it is needed when the line has come back
  }
}

ArmedThreads arm_others(WatchSlot& slot, ThreadState& self, std::uint32_t partner) {
  Registry& threads = registry();
  const std::uint32_t extent = threads.extent();
  const auto can_be_armed = [&](const ThreadState& thread) {
    return &thread != &self && thread.watch_events.load(std::memory_order_acquire) != 0 && !is_armed_for(slot, thread);
  };
  std::uint32_t armed = 0, gone = 0;
  const auto arm_one = [&](ThreadState& thread) {
    if (arm_all(slot, thread)) {
      ++armed;
    } else if (!lives(thread)) {
      ++gone;  // it accesses nothing
    }
  };
  std::uint32_t candidates = 0;
  for (std::uint32_t i = 0; i < extent; ++i) {
    candidates += can_be_armed(threads.at(i)) ? 1 : 0;
  }
  ThreadState* const first = thread_of(partner);
  const bool has_partner = first != nullptr && can_be_armed(*first);
  if (has_partner) {
    arm_one(*first);
  }
  watch_policy::ArmedDraw draw(candidates, has_partner);
  for (std::uint32_t i = 0; i < extent && !draw.complete(); ++i) {
    ThreadState& thread = threads.at(i);
    if ((!has_partner || &thread != first) && can_be_armed(thread) && draw.take(self.random)) {
      arm_one(thread);
    }
  }
  return {candidates - gone, armed};
}

void arm_unarmed(WatchSlot& slot, ThreadState& self) {
  for (std::uint32_t w = 0; w < slot.choice.words && self.watch_events.load(std::memory_order_relaxed) != 0; ++w) {
    const std::uint32_t event = slot.first_event() + w;
    if (self.watchpoints->mode[event].load(std::memory_order_relaxed) !=
        static_cast<std::uint8_t>(WatchMode::read_write)) {
      arm(slot, self, w, WatchMode::read_write);
    }
  }
}

void set_mode(WatchSlot& slot, ThreadState& thread, std::uint32_t word, WatchMode mode) {
  const std::uint32_t event = slot.first_event() + word;
  const profile::WatchWord& piece = slot.choice.word[word];
  const std::uint64_t address = slot.line + piece.offset;
  if (!may_watch(thread, event, address)) {
    return;
  }
  const std::uint64_t begin = monotonic_ns();
  const long result = set_event(thread, event, {address, piece.length, mode});
  note_move(slot, thread, monotonic_ns() - begin, result);
}

void restore_thread(WatchSlot& slot, ThreadState& thread) {
  for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
    const auto mode =
        static_cast<WatchMode>(thread.watchpoints->mode[slot.first_event() + w].load(std::memory_order_relaxed));
    if (mode != WatchMode::read_write) {
      set_mode(slot, thread, w, WatchMode::read_write);
    }
  }
}

// The trap was in flight while the watch was closed or moved, or another thread armed this event while a third closed
// the watch. In the latter case it would fire at every access for ever.
void correct_stray(WatchSlot& slot, ThreadState& self, std::uint32_t word, bool open) {
  const std::uint32_t event = slot.first_event() + word;
  const auto mode = static_cast<WatchMode>(self.watchpoints->mode[event].load(std::memory_order_relaxed));
  if (open && mode != WatchMode::off) {
    set_mode(slot, self, word, mode);
  } else {
    set_event(self, event, {});
  }
}

void disarm_all(WatchSlot& slot) {
  const std::uint32_t extent = registry().extent();
  for (std::uint32_t i = 0; i < extent; ++i) {
    ThreadState& thread = registry().at(i);
    if (thread.watchpoints == nullptr) {
      continue;
    }
    std::uint32_t id = slot.watch.load(std::memory_order_relaxed);
    const std::uint32_t armed_for = thread.watchpoints->watch[slot.index].load(std::memory_order_seq_cst);
    if (armed_for != id && armed_for != 0) {
      continue;
    }
    for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
      if (in_use(thread, slot.first_event() + w)) {
        disarm(slot, thread, w);
      }
    }
    thread.watchpoints->watch[slot.index].compare_exchange_strong(id, 0, std::memory_order_seq_cst);
  }
}

}  // namespace crosstalk::in_target
