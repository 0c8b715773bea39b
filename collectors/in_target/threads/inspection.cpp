// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/threads/inspection.h"

#include <signal.h>

#include "collectors/in_target/core/passage.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/kernel_signals.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/task_list.h"
#include "collectors/in_target/sys/task_status.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint64_t our_signals = bit_in_mask(SIGTRAP) | bit_in_mask(clock_signal);

// Our handlers run with every signal blocked, from before their first instruction to their last; hardly any other code
// does for long.
bool blocks_all(const TaskStatus& status) {
  constexpr std::uint64_t never_blocked = bit_in_mask(SIGKILL) | bit_in_mask(SIGSTOP);
  return (status.blocked | never_blocked) == every_signal;
}

}  // namespace

bool in_handler(std::int32_t tid) {
  TaskStatus status;
  // A signal that is pending and not blocked is about to bring the thread into a handler.
  return read_task_status(tid, status) && (blocks_all(status) || (status.pending & ~status.blocked & our_signals) != 0);
}

void Inspection::begin() {
  seen_up_to_ = 0;
  looks_.count = 0;
}

/// Keeps the lowest ids.
void Inspection::Looks::insert(std::int32_t tid) {
  if (count == at_once) {
    more = true;
    if (tid > look[at_once - 1].tid) {
      return;
    }
    --count;
  }
  std::size_t at = count++;
  for (; at > 0 && look[at - 1].tid > tid; --at) {
    look[at] = look[at - 1];
  }
  look[at] = {tid, false, 0};
}

/// Lists the lowest thread ids above those that were seen outside, with the results of former looks at them.
void Inspection::list_threads() {
  former_ = looks_;
  looks_.count = 0;
  looks_.more = false;
  each_task([&](std::int32_t tid) {
    if (tid > seen_up_to_) {
      looks_.insert(tid);
    }
  });
  const Look* known = former_.look.data();
  const Look* const end = known + former_.count;
  for (std::size_t i = 0; i < looks_.count; ++i) {
    Look& look = looks_.look[i];
    while (known < end && known->tid < look.tid) {
      ++known;
    }
    if (known < end && known->tid == look.tid) {
      look = *known;
    }
  }
}

// The kernel sends an event's signal when the thread goes back to the program's code, and shows it nowhere before (a
// task_work of perf_event_overflow()). The thread may lose its processor on this way of some microseconds, and the
// event may be closed meanwhile. A thread that sleeps, or has used CPU time since, is not on it; nor is one that calls
// us.
bool Inspection::is_outside(Look& look, Events events) {
  constexpr std::uint64_t delivered_after_ns = 1'000'000;
  TaskStatus status;
  if (!read_task_status(look.tid, status)) {
    return true;  // it has ended
  }
  const bool own = look.tid == kernel_thread_id();
  if ((!own && blocks_all(status)) || (status.pending & our_signals) != 0) {
    return false;
  }
  if (own || !status.runnable || events == Events::open) {
    return true;
  }
  const std::uint64_t cpu_ns = clock_ns(thread_cpu_clock(look.tid));  // 0: it has ended
  look.cpu_ns = look.cpu_ns == 0 ? cpu_ns : look.cpu_ns;
  return cpu_ns == 0 || cpu_ns >= look.cpu_ns + delivered_after_ns;
}

Inspection::Found Inspection::go_on(Events events, std::uint64_t until_cpu_ns) {
  if (Passage::anybody()) {
    return Found::somebody_inside;
  }
  while (true) {
    list_threads();
    bool all_outside = true;
    for (std::size_t i = 0; i < looks_.count; ++i) {
      Look& look = looks_.look[i];
      look.outside = look.outside || is_outside(look, events);
      all_outside = all_outside && look.outside;
    }
    if (!all_outside) {
      return Found::somebody_inside;
    }
    if (!looks_.more) {
      return Found::nobody_inside;
    }
    seen_up_to_ = looks_.look[looks_.count - 1].tid;
    if (thread_cpu_ns() >= until_cpu_ns) {
      return Found::not_all_seen;
    }
  }
}

}  // namespace crosstalk::in_target
