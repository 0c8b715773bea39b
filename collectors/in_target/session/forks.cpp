// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/session/forks.h"

#include <pthread.h>

#include "collectors/in_target/contract/stand_ins.h"
#include "collectors/in_target/core/fork_mark.h"
#include "collectors/in_target/core/passage.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/objects/blocks.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/probe/line_probe.h"
#include "collectors/in_target/processes/remote_events.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/sampling/memory_events.h"
#include "collectors/in_target/sampling/thread_timer.h"
#include "collectors/in_target/session/notices.h"
#include "collectors/in_target/session/process_start.h"
#include "collectors/in_target/signals/alternate_stack.h"
#include "collectors/in_target/signals/own_signals.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/float_state.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/threads/found_threads.h"
#include "collectors/in_target/threads/threads.h"
#include "collectors/in_target/watch/watch_events.h"
#include "collectors/in_target/watch/watch_unit.h"

namespace crosstalk::in_target {
namespace {

// A thread's state during another thread's fork stays in the child for ever: a raised limit, the loader's lock.
void before_fork() {
  hold_limit_for_fork();
  hold_modules_for_fork();
}

void after_fork_in_parent() {
  release_modules_after_fork();
  release_limit_after_fork();
}

void in_forked_child() {
  const OwnFloatState float_state;
  set_fork_mark();
  Runtime& r = runtime();
  environment_after_fork();
  modules_after_fork();
  if (!r.observing.exchange(false)) {
    return;
  }
  const std::uint64_t begin_ns = thread_cpu_ns();
  switch_off_before_closing(false);
  // The descriptors are copies of the parent's: moving them would move the parent's watchpoints.
  for (std::uint32_t i = 0; i < registry().extent(); ++i) {
    ThreadState& thread = registry().at(i);
    drop_events(thread);
    close_clock_event(thread.clock_event);
    MemoryEvents::forget(thread);
    thread.ring.detach();
  }
  Passage::after_fork();
  forget_threads();
  handler_stacks_after_fork();
  forget_handler_stays();
  if (r.injected) {  // it is left alone at once, as its parent will be later
    unpatch_modules_in_child();
    disown_signals();
    release_clock_signal();
    track_blocks(false, 0);
    return;
  }
  r.foreign.store(!in_recorders_pid_namespace(), std::memory_order_relaxed);
  if (r.config.follow_children == 0 || r.foreign.load(std::memory_order_relaxed)) {
    track_blocks(false, 0);
    return;
  }
  blocks_after_fork();
  shared_memory_after_fork();
  if (begin_observing(true)) {
    count_start(begin_ns);
  }
}

}  // namespace

void forget_threads() {
  Runtime& r = runtime();
  drop_remote_events();
  forget_events_open();
  registry().clear();
  forget_thread_timers();
  forget_lives();
  forget_threads_begun();
  found_threads_after_fork();
  watch_unit().forget();
  r.budget.clear();
  r.quiesced.store(false, std::memory_order_relaxed);
}

void watch_forks() {
  make_fork_mark();
  pthread_atfork(before_fork, after_fork_in_parent, in_forked_child);
}

// Such a child has copies of its parent's descriptors and of its threads' states: it would move its parent's
// watchpoints, even after the parent has no handler for them any more.
void notice_fork() {
  if (is_unnoticed_fork()) {
    const SavedErrno saved;
    in_forked_child();
  }
}

}  // namespace crosstalk::in_target
