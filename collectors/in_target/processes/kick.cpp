// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/processes/kick.h"

#include "collectors/in_target/session/runtime.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint32_t shut = 0x80000000;  // the rest of a gate counts who is inside

template <class Action>
void each_of_ours(Action action) {
  for (std::uint32_t i = 0; i < registry().extent(); ++i) {
    ThreadState& thread = registry().at(i);
    if (thread.phase.load(std::memory_order_acquire) == static_cast<std::uint32_t>(ThreadPhase::live) &&
        thread.slot != nullptr) {
      action(*thread.slot);
    }
  }
}

}  // namespace

bool kick(std::uint32_t number) {
  const Runtime& r = runtime();
  if (number == 0 || number > r.slot_count) {
    return false;
  }
  profile::ThreadSlot& slot = *r.arena.slot(number - 1);
  bool sent = false;
  const std::uint32_t gate = slot.gate.fetch_add(1, std::memory_order_seq_cst);
  const bool lives = slot.state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(profile::SlotState::live);
  if ((gate & shut) == 0 && lives) {
    const std::int32_t pid = slot.pid.load(std::memory_order_relaxed);
    const std::int32_t tid = slot.tid.load(std::memory_order_relaxed);
    sent = pid > 0 && tid > 0 && pid != r.pid && system_call(SYS_tgkill, pid, tid, kick_signal) == 0;
  }
  slot.gate.fetch_sub(1, std::memory_order_seq_cst);
  return sent;
}

void open_gate(profile::ThreadSlot& slot) { slot.gate.fetch_and(~shut, std::memory_order_seq_cst); }
void shut_gate(profile::ThreadSlot& slot) { slot.gate.fetch_or(shut, std::memory_order_seq_cst); }

void shut_gates() {
  constexpr int patience = 4000;  // times that the processor is offered to others
  each_of_ours(shut_gate);
  int waited = 0;
  each_of_ours([&](profile::ThreadSlot& slot) {
    while ((slot.gate.load(std::memory_order_seq_cst) & ~shut) != 0 && waited < patience) {
      system_call(SYS_sched_yield);
      ++waited;
    }
  });
}

void open_gates() { each_of_ours(open_gate); }

}  // namespace crosstalk::in_target
