// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/threads/found_threads.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "collectors/in_target/core/messages.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/sampling/thread_timer.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/kernel_signals.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/task_list.h"
#include "collectors/in_target/sys/task_status.h"
#include "collectors/in_target/sys/try_lock.h"
#include "collectors/in_target/threads/found_table.h"
#include "collectors/in_target/threads/step_aside.h"
#include "collectors/in_target/threads/thread_end.h"
#include "collectors/in_target/threads/threads.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint64_t look_interval_ns = 250'000'000;
constexpr std::uint64_t thorough_one_in = 16;  // looks
constexpr std::uint64_t tracer_one_in = 4;
constexpr std::uint64_t longest_look_ns = 6'000'000;  // CPU time for new threads: the thread has its own work
constexpr std::uint64_t rest_per_work = 200;          // looking takes at most one part in so many of the time

// The state of the current look: one at a time, under the flag.
constinit ProcessFlag looking;
constinit std::uint32_t look_number = 0;
constinit std::uint8_t enrolled_seen[max_threads / 8] = {};
constinit std::uint64_t judge_until_ns = 0;  // thread_cpu_ns()
constinit std::atomic<std::uint32_t> not_judged{0};
constinit std::uint32_t turned_away = 0, most_turned_away = 0;  // threads beyond the table
constinit std::atomic<std::uint64_t> next_look_ns{0};

// Each thread that libc has made has told the kernel of its robust locks. A thread made by the system call itself may
// run on a stack of a few bytes: a signal would destroy the memory below.
bool has_usual_stack(std::int32_t tid) {
  std::uint64_t locks = 0;
  std::size_t bytes = 0;
  return system_call(SYS_get_robust_list, tid, &locks, &bytes) >= 0 && locks != 0;
}

void say_left_alone() {
  static constinit Once once;
  if (once.first()) {
    emit_message("raw_threads",
                 "threads that the program has made without libc are not observed: nothing is known of their stacks");
  }
}

// libc's own thread for SIGEV_THREAD timers waits for our signal's number; a thread that blocks it would never tick.
bool lets_ticks_in(std::int32_t tid) {
  constexpr std::uint64_t bit = bit_in_mask(clock_signal);
  TaskStatus status;
  return read_task_status(tid, status) && (status.blocked & bit) == 0;
}

// A thread of libc's has no list of locks, either, before its first instructions and just before its end. So only a
// thread without a list at two looks was made without libc.
void judge(Found& found, std::int32_t tid, bool first_time) {
  if (runs_no_code(tid)) {
    found.settled = true;
    return;
  }
  if (!has_usual_stack(tid)) {
    found.settled = !first_time;
    if (!first_time) {
      say_left_alone();
    }
    return;
  }
  found.settled = true;
  const long timer =
      lets_ticks_in(tid) ? start_thread_timer(tid, runtime().config.period_ns, runtime().config.period_ns) : -1;
  if (timer >= 0) {
    found.timer.store(static_cast<std::int32_t>(timer) + 1, std::memory_order_seq_cst);
    // It has become known by another way meanwhile, or the thread that ends the session has been here before.
    if (registry().find(tid) != nullptr || !runtime().observing.load(std::memory_order_seq_cst)) {
      drop_timer(found);
    }
  }
}

void meet(std::int32_t tid) {
  if (const ThreadState* known = registry().find(tid); known != nullptr) {
    enrolled_seen[known->index / 8] =
        static_cast<std::uint8_t>(enrolled_seen[known->index / 8] | 1U << known->index % 8);
    return;
  }
  if (Found* known = find_found(tid); known != nullptr) {
    known->look = look_number;
    if (!known->settled) {
      judge(*known, tid, false);
    }
    return;
  }
  if (thread_cpu_ns() >= judge_until_ns) {
    not_judged.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  Found* const place = find_found(0);
  if (place == nullptr) {
    ++turned_away;
    return;
  }
  place->look = look_number;
  place->timer.store(0, std::memory_order_relaxed);
  place->tid.store(tid, std::memory_order_release);
  judge(*place, tid, true);
}

bool is_gone(std::int32_t tid) { return system_call(SYS_tgkill, runtime().pid, tid, 0) == -ESRCH; }

// Threads may end before their first tick, and their timers only with the next look. Until then the limits on the
// program's timers and pending signals include ours of ended threads: so each tick checks a few of them.
void forget_ended_in_turn() {
  constexpr std::size_t entries = 256, asked = 4;  // a tick: at most
  static constinit std::size_t next = 0;           // under the flag `looking`
  FoundTable& table = found_table();
  std::size_t questions = 0;
  for (std::size_t n = 0; n < entries && questions < asked; ++n) {
    Found& found = table[next];
    next = (next + 1) % table.size();
    if (found.timer.load(std::memory_order_relaxed) != 0) {
      ++questions;
      if (is_gone(found.tid.load(std::memory_order_relaxed))) {
        drop_timer(found);
      }
    }
  }
}

void forget_the_gone() {
  for (Found& found : found_table()) {
    const std::int32_t tid = found.tid.load(std::memory_order_relaxed);
    if (tid != 0 && found.look != look_number && (is_gone(tid) || registry().find(tid) != nullptr)) {
      drop_timer(found);
      found.tid.store(0, std::memory_order_release);
    }
  }
  for (std::uint32_t i = 0; i < registry().extent(); ++i) {
    ThreadState& thread = registry().at(i);
    const std::int32_t tid = thread.tid.load(std::memory_order_relaxed);
    const bool lives = thread.phase.load(std::memory_order_acquire) == static_cast<std::uint32_t>(ThreadPhase::live);
    if (lives && tid != 0 && (enrolled_seen[i / 8] & 1U << i % 8) == 0 && is_gone(tid)) {
      end_lost_thread(thread, tid);
    }
  }
}

void count_turned_away() {
  if (turned_away > most_turned_away) {
    runtime().arena.header->threads_unobserved.fetch_add(turned_away - most_turned_away, std::memory_order_relaxed);
    most_turned_away = turned_away;
  }
}

// The number of links of a task directory is the number of its threads + 2. Asks by name: a descriptor, even a
// short-lived one, takes a number that another thread of the program may expect to get.
bool worth_a_look() {
  constexpr std::size_t own_links = 2;
  struct stat status {};
  system_call(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &status, 0);
  return status.st_nlink != registry().live() + own_links || look_number % thorough_one_in == 0;
}

void look() {
  ++look_number;
  const long list = worth_a_look() && has_spare_numbers() ? open_task_list() : -1;
  if (list < 0) {
    return;
  }
  std::memset(enrolled_seen, 0, sizeof enrolled_seen);
  turned_away = 0;
  not_judged.store(0, std::memory_order_relaxed);
  judge_until_ns = thread_cpu_ns() + longest_look_ns;
  each_task_of(list, meet);
  forget_the_gone();
  count_turned_away();
  system_call(SYS_close, list);
}

void leave_to_tracer() {
  TaskStatus status;
  if (look_number % tracer_one_in == 0 && has_spare_numbers() && read_task_status(0, status) && status.tracer != 0) {
    step_aside("traced", "a debugger or tracer has come: the program is not observed from then on", StepAside::now);
  }
}

}  // namespace

void find_threads(std::uint64_t now_ns) {
  const TryLock lock(looking, runtime().pid);
  if (!lock.held()) {
    return;
  }
  if (now_ns < next_look_ns.load(std::memory_order_relaxed)) {
    forget_ended_in_turn();
    return;
  }
  const std::uint64_t begin_ns = thread_cpu_ns();
  look();
  leave_to_tracer();
  const std::uint64_t took_ns = thread_cpu_ns() - begin_ns;
  runtime().budget.spend(took_ns);
  if (ThreadState* self = current_thread(); self != nullptr) {
    self->slot->handlers_ns.fetch_add(took_ns, std::memory_order_relaxed);
  }
  next_look_ns.store(now_ns + std::max(look_interval_ns, took_ns * rest_per_work), std::memory_order_relaxed);
}

void adopt_found_thread(const ThreadPlace& place) {
  const Runtime& r = runtime();
  if (kernel_process_id() != r.pid || !r.observing.load(std::memory_order_relaxed)) {
    return;
  }
  ThreadState* self = begin_thread(place.stack_low, place.stack_high, place.thread_pointer);
  if (self != nullptr) {
    tell_end_of_calling_thread(place.thread_pointer);
    start_clock(*self);
  } else if (Found* found = find_found(kernel_thread_id()); found != nullptr) {
    drop_timer(*found);  // there is no room for it: it is left alone from now on
  }
}

bool has_more_to_judge() { return not_judged.load(std::memory_order_relaxed) != 0; }

void look_soon() { next_look_ns.store(0, std::memory_order_relaxed); }

void found_threads_after_fork() {
  forget_found_timers();
  next_look_ns.store(0, std::memory_order_relaxed);
}

}  // namespace crosstalk::in_target
