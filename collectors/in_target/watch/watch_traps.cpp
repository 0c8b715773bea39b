// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch/watch_traps.h"

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/core/target_view.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/watch/admission.h"
#include "collectors/in_target/watch/arming.h"
#include "collectors/in_target/watch/common_watches.h"
#include "collectors/in_target/watch/followed_watches.h"
#include "collectors/in_target/watch/remote_arming.h"
#include "collectors/in_target/watch/trap_record.h"
#include "collectors/in_target/watch/watch_events.h"
#include "collectors/in_target/watch/watch_messages.h"

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

// The runner has lost the line.
void restore_runner(WatchSlot& slot, std::uint32_t runner) {
  if (ThreadState* const thread = thread_of(runner); thread != nullptr) {
    restore_thread(slot, *thread);
  } else if (slot.shared != nullptr) {
    restore_elsewhere(slot, runner);
  }
}

// A trap of no open watch.
void take_stray(WatchSlot& slot, ThreadState& self, std::uint32_t word, bool open) {
  if (++self.stray_traps > stray_limit) {
    end_watching(self);
    too_many_strays();
  } else {
    correct_stray(slot, self, word, open);
  }
}

// The trap is one of watch `id`.
void take_turn(OpenWatches& watches, WatchSlot& slot, ThreadState& self, std::uint32_t id, const WatchpointTrap& trap) {
  const std::uint32_t word = trap.event % words_per_slot;
  watch_policy::WatchProgress& watched = slot.progress();
  const auto mode = static_cast<WatchMode>(self.watchpoints->mode[trap.event].load(std::memory_order_relaxed));
  const std::uint32_t sequence = watched.count_trap();
  const TrapFacts facts{
      id, sequence, static_cast<std::uint8_t>(word), mode == WatchMode::write_only, slot.line, slot.shared != nullptr};
  record_trap(self, facts, trap.registers, trap.now_ns);
  if (mode == WatchMode::write_only || was_store(self, trap.registers, trap.flags)) {
    watched.saw_store();
  }
  set_mode(slot, self, word, watch_policy::mode_after_trap(mode));
  const watch_policy::Turn turn = watched.advance(self.number, sequence, trap.now_ns);
  if (turn.close) {
    watches.close_if_open(slot, self, id, *turn.close);
  }
  if (turn.rearm != 0) {
    restore_runner(slot, turn.rearm);
  }
}

}  // namespace

void take_trap_in_handler(ThreadState& self, std::uint32_t event) { set_event(self, event, {}); }

bool take_trap(OpenWatches& watches, ThreadState& self, const WatchpointTrap& trap) {
  const std::uint32_t index = trap.event / words_per_slot;
  if (index >= watch_slots) {
    return false;
  }
  WatchSlot& slot = watches.slots()[index];
  const std::uint32_t word = trap.event % words_per_slot;
  if (sharing()) {
    follow_one(watches, slot, self, trap.now_ns);  // another process may have armed this thread
  }
  const std::uint32_t id = slot.watch.load(std::memory_order_acquire);
  if (id == 0 || word >= slot.choice.words || trap.address != slot.line + slot.choice.word[word].offset) {
    take_stray(slot, self, word, id != 0 && word < slot.choice.words);
    return false;
  }
  self.stray_traps = 0;
  if (is_over(slot, id)) {
    end_if_over(watches, slot, self, id);
    return false;
  }
  take_turn(watches, slot, self, id, trap);
  return true;
}

}  // namespace crosstalk::in_target
