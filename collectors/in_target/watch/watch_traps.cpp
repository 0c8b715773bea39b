// SPDX-License-Identifier: Apache-2.0
// Handles a trap: records it, and moves the watchpoints of the line's old and new owner.
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/core/target_view.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/watch/trap_record.h"
#include "collectors/in_target/watch/watch_events.h"
#include "collectors/in_target/watch/watch_messages.h"
#include "collectors/in_target/watch/watch_unit.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint32_t stray_limit = 256;  // traps of no watch in a row, after which a thread is watched no more

// True if the instruction before a trap was a store, as far as this is known here; the report decides it from the whole
// function.
bool was_store(const ThreadState& self, const Registers& registers, std::uint64_t flags) {
  FoundAccess access;
  TargetView view(self, registers);
  return finder().find_retired(registers, flags, self.thread_pointer, view.reader(), access) && stores(access.kind);
}

}  // namespace

void WatchUnit::restore_runner(Slot& slot, std::uint32_t runner) {
  ThreadState* thread = thread_of(runner);
  if (thread == nullptr) {
    if (slot.shared != nullptr) {
      restore_remote(slot, runner);
    }
    return;
  }
  for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
    const auto mode =
        static_cast<WatchMode>(thread->watchpoints->mode[first_event(slot) + w].load(std::memory_order_relaxed));
    if (mode != WatchMode::read_write) {
      set_mode(slot, *thread, w, WatchMode::read_write);
    }
  }
}

// A trap of no open watch: it was in flight while the watch was closed or moved, or another thread armed this
// event while a third closed the watch. In the latter case it would fire at every access for ever.
void WatchUnit::correct(Slot& slot, ThreadState& self, std::uint32_t word, bool open) {
  const std::uint32_t event = first_event(slot) + word;
  const auto mode = static_cast<WatchMode>(self.watchpoints->mode[event].load(std::memory_order_relaxed));
  if (open && mode != WatchMode::off) {
    set_mode(slot, self, word, mode);
  } else {
    set_event(self, event, {});
  }
}

// Does so even if the thread is watched no more: a running handler may have armed it since, and nobody else would
// switch that off.
void WatchUnit::trapped_in_handler(ThreadState& self, std::uint32_t event) { set_event(self, event, {}); }

bool WatchUnit::trapped(ThreadState& self, std::uint32_t event, std::uint64_t address, const Registers& registers,
                        std::uint64_t flags, std::uint64_t now_ns) {
  const std::uint32_t index = event / words_per_slot;
  if (index >= watch_slots) {
    return false;
  }
  Slot& slot = slot_[index];
  const std::uint32_t word = event % words_per_slot;
  if (sharing()) {
    follow_one(slot, self, now_ns);  // another process may have armed this thread
  }
  const std::uint32_t id = slot.watch.load(std::memory_order_acquire);
  if (id == 0 || word >= slot.choice.words || address != slot.line + slot.choice.word[word].offset) {
    if (++self.stray_traps > stray_limit) {
      leave(self);
      too_many_strays();
    } else {
      correct(slot, self, word, id != 0 && word < slot.choice.words);
    }
    return false;
  }
  self.stray_traps = 0;
  if (is_over(slot, id)) {
    end_if_over(slot, self, id);
    return false;
  }
  WatchProgress& watched = progress(slot);
  const auto mode = static_cast<WatchMode>(self.watchpoints->mode[event].load(std::memory_order_relaxed));
  const std::uint32_t sequence = watched.count_trap();
  const TrapFacts facts{
      id, sequence, static_cast<std::uint8_t>(word), mode == WatchMode::write_only, slot.line, slot.shared != nullptr};
  record_trap(self, facts, registers, now_ns);
  if (mode == WatchMode::write_only || was_store(self, registers, flags)) {
    watched.saw_store();
  }
  set_mode(slot, self, word, watch_policy::mode_after_trap(mode));
  const watch_policy::Turn turn = watched.advance(self.number, sequence, now_ns);
  if (turn.close && try_lock(slot)) {
    if (slot.watch.load(std::memory_order_relaxed) == id) {
      close(slot, self, *turn.close);
    }
    unlock(slot);
  }
  if (turn.rearm != 0) {
    restore_runner(slot, turn.rearm);
  }
  return true;
}

}  // namespace crosstalk::in_target
