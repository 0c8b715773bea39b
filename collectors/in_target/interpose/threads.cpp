// SPDX-License-Identifier: Apache-2.0
// pthread_create and clone: the new thread is observed from its first instruction. Threads that come another way
// (the system call itself) are found by find_threads().
#include "collectors/in_target/threads/threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/passage.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/session/forks.h"
#include "collectors/in_target/signals/alternate_stack.h"
#include "collectors/in_target/signals/own_signals.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/threads/creations.h"
#include "collectors/in_target/threads/thread_end.h"
#include "collectors/in_target/watch/watch_unit.h"

namespace crosstalk::in_target {

using StartRoutine = void* (*)(void*);
using CloneRoutine = int (*)(void*);

namespace {

struct Start {
  std::atomic<bool> taken;
  StartRoutine routine;
  CloneRoutine clone_routine;
  void* argument;
  std::size_t stack_bytes;
  std::uint8_t mask;
};

// Creations under way at one time; when all are taken a thread starts unobserved and is found later.
constexpr std::size_t max_starts = 512;
constinit Start starts[max_starts] = {};

constinit pthread_key_t end_key = 0;
constinit std::atomic<bool> has_end_key{false};

Start* take_start() {
  for (Start& start : starts) {
    if (!start.taken.load(std::memory_order_relaxed) && !start.taken.exchange(true, std::memory_order_acquire)) {
      return &start;
    }
  }
  return nullptr;
}

// Runs among the destructors of the thread's other keys; those that come after it are not observed.
void on_thread_end(void* /*value*/) {
  const Passage passage;
  if (!observing() || kernel_process_id() != runtime().pid) {
    return;
  }
  const int saved_errno = errno;
  keep_clock_signal();  // it may have cancelled itself (cancel.cpp)
  if (ThreadState* self = current_thread(); self != nullptr) {
    end_thread(*self);
    take_handler_stack_back();
  }
  errno = saved_errno;
}

// `stack_high`: the beginning of the thread's own frames. glibc puts its control block on top of the stack.
void begin_observed(std::uint64_t stack_bytes, std::uint64_t stack_high, StartRoutine routine) {
  const Passage passage;
  if (!observing()) {
    return;
  }
  const int saved_errno = errno;
  const std::uint64_t begin_ns = thread_cpu_ns();
  const std::uint64_t thread_pointer = fs_base();
  ThreadState* self =
      begin_thread(thread_pointer - stack_bytes, stack_high, thread_pointer, reinterpret_cast<std::uint64_t>(routine));
  if (self != nullptr) {
    if (has_end_key) {
      pthread_setspecific(end_key, self);
    }
    self->handler_stack = lend_handler_stack();
    start_clock(*self);
    charge_own_calls(*self, thread_cpu_ns() - begin_ns);
    on_thread_in_module(reinterpret_cast<std::uint64_t>(routine));
  }
  errno = saved_errno;
}

void* run_observed(void* argument) {
  auto* start = static_cast<Start*>(argument);
  const StartRoutine routine = start->routine;
  void* const own_argument = start->argument;
  const std::size_t stack_bytes = start->stack_bytes;
  inherit_mask_shadow(start->mask);
  start->taken.store(false, std::memory_order_release);
  begin_observed(stack_bytes, reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)) + 64, routine);
  return routine(own_argument);
}

std::size_t stack_size_of(const pthread_attr_t* attributes) {
  std::size_t bytes = 0;
  if (attributes != nullptr && pthread_attr_getstacksize(attributes, &bytes) == 0 && bytes != 0) {
    return bytes;
  }
  pthread_attr_t defaults;
  if (pthread_getattr_default_np(&defaults) == 0) {
    pthread_attr_getstacksize(&defaults, &bytes);
    pthread_attr_destroy(&defaults);
  }
  return bytes;
}

CROSSTALK_REAL constinit RealFunction<int(pthread_t*, const pthread_attr_t*, StartRoutine, void*)> real_create{
    "pthread_create"};

// The stack's size is not known, nor whether the thread has a control block of its own: so no stack bounds but its
// beginning, and nothing here may touch thread-local storage.
int run_cloned(void* argument) {
  auto* start = static_cast<Start*>(argument);
  const CloneRoutine routine = start->clone_routine;
  void* const own_argument = start->argument;
  start->taken.store(false, std::memory_order_release);
  {
    const Passage passage;
    const auto begins_at = reinterpret_cast<std::uint64_t>(routine);
    if (ThreadState* self = observing() ? begin_thread(0, 0, 0, begins_at) : nullptr; self != nullptr) {
      self->handler_stack = lend_handler_stack();
      start_clock(*self);
    }
  }
  const int result = routine(own_argument);
  const Passage passage;
  if (observing() && kernel_process_id() == runtime().pid) {
    if (ThreadState* self = current_thread(); self != nullptr) {
      end_thread(*self);
      take_handler_stack_back();
    }
  }
  return result;
}

CROSSTALK_REAL constinit RealFunction<int(CloneRoutine, void*, int, void*, pid_t*, void*, pid_t*)> real_clone{"clone"};

}  // namespace

namespace {
using Destructor = void (*)(void*);
CROSSTALK_REAL constinit RealFunction<int(pthread_key_t*, Destructor)> real_key_create{"pthread_key_create"};
}  // namespace

void end_threads_with_a_key() { has_end_key = real_key_create(&end_key, on_thread_end) == 0; }

namespace {

// libc keeps the values of these keys in the thread's control block, and sets them by two plain stores. It allocates
// memory for the others when the first of them is set.
constexpr pthread_key_t keys_in_control_block = 32;  // glibc's PTHREAD_KEY_2NDLEVEL_SIZE

}  // namespace

void tell_end_of_calling_thread(std::uint64_t thread_pointer) {
  if (has_end_key && end_key < keys_in_control_block && thread_pointer != 0) {
    pthread_setspecific(end_key, &end_key);
  }
}

CROSSTALK_INTERPOSE(int, create_key, "pthread_key_create", (pthread_key_t*, Destructor));

// This takes the last of libc's keys, which the program could use, too. Without the key, find_threads() detects ended
// threads.
int create_key(pthread_key_t* key, Destructor destructor) {
  const int result = real_key_create(key, destructor);
  if (result != EAGAIN || !has_end_key.exchange(false)) {
    return result;
  }
  pthread_key_delete(end_key);
  return real_key_create(key, destructor);
}

namespace {

// Called before the first thread gets another one beside it: it may sleep from now on, and not be sampled before it
// accesses memory that the other has stored to.
void attend_before_first_thread() {
  ThreadState* const self = registry().live() == 1 ? current_thread() : nullptr;
  if (self != nullptr && self->samples > 0) {
    const std::uint64_t begin_ns = thread_cpu_ns();
    watch_unit().attend(*self);
    charge_own_calls(*self, thread_cpu_ns() - begin_ns);
  }
}

}  // namespace

CROSSTALK_INTERPOSE(int, create_thread, "pthread_create", (pthread_t*, const pthread_attr_t*, StartRoutine, void*));

int create_thread(pthread_t* thread, const pthread_attr_t* attributes, StartRoutine routine, void* argument) {
  if (real_create.get() == nullptr) {
    return ENOSYS;
  }
  notice_fork();
  Start* start = observing() ? take_start() : nullptr;
  if (start == nullptr) {
    return real_create(thread, attributes, routine, argument);
  }
  start->routine = routine;
  start->argument = argument;
  start->stack_bytes = stack_size_of(attributes);
  start->mask = mask_shadow();
  {
    const Passage passage;
    if (observing()) {
      note_creation(registers_here());
      attend_before_first_thread();
    }
  }
  const int result = real_create(thread, attributes, run_observed, start);
  if (result != 0) {
    start->taken.store(false, std::memory_order_release);
  }
  return result;
}

CROSSTALK_INTERPOSE(int, clone_thread, "clone", (CloneRoutine, void*, int, void*, pid_t*, void*, pid_t*));

// clone(2) is variadic; the caller passes the last three only if its flags say so. On x86-64 they come in registers and
// on the stack alike for both declarations, so reading and passing them on is harmless.
int clone_thread(CloneRoutine routine, void* stack, int flags, void* argument, pid_t* parent_tid, void* tls,
                 pid_t* child_tid) {
  if ((flags & CLONE_THREAD) != 0) {
    notice_fork();
  }
  if ((flags & CLONE_THREAD) != 0 && (flags & CLONE_FILES) == 0) {
    const SavedErrno saved;
    on_own_descriptors(true);
  }
  Start* start = (flags & CLONE_THREAD) != 0 && observing() ? take_start() : nullptr;
  if (start == nullptr) {
    return real_clone(routine, stack, flags, argument, parent_tid, tls, child_tid);
  }
  start->clone_routine = routine;
  start->argument = argument;
  const int result = real_clone(run_cloned, stack, flags, start, parent_tid, tls, child_tid);
  if (result < 0) {
    start->taken.store(false, std::memory_order_release);
  }
  return result;
}

}  // namespace crosstalk::in_target
