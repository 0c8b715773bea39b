// SPDX-License-Identifier: Apache-2.0
// Attaching to the arena when the library is loaded, letting go when the program exits, and what fork, exec and
// seccomp do in between.
#include "collectors/in_target/session/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/library_limits.h"
#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/contract/stand_ins.h"
#include "collectors/in_target/core/fork_mark.h"
#include "collectors/in_target/core/messages.h"
#include "collectors/in_target/core/passage.h"
#include "collectors/in_target/core/record_writer.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/objects/blocks.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/objects/off_limits.h"
#include "collectors/in_target/probe/line_probe.h"
#include "collectors/in_target/processes/remote_events.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/sampling/lookahead_sampling.h"
#include "collectors/in_target/sampling/memory_events.h"
#include "collectors/in_target/sampling/thread_timer.h"
#include "collectors/in_target/session/direct_calls.h"
#include "collectors/in_target/session/handlers.h"
#include "collectors/in_target/session/notices.h"
#include "collectors/in_target/signals/alternate_stack.h"
#include "collectors/in_target/signals/handler_stubs.h"
#include "collectors/in_target/signals/own_signals.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/float_state.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/task_status.h"
#include "collectors/in_target/threads/found_threads.h"
#include "collectors/in_target/threads/step_aside.h"
#include "collectors/in_target/threads/thread_end.h"
#include "collectors/in_target/threads/threads.h"
#include "collectors/in_target/watch/admission.h"
#include "collectors/in_target/watch/watch_events.h"
#include "collectors/in_target/watch/watch_unit.h"

// The dynamic loader's note of where the main thread's stack began.
extern "C" void* __libc_stack_end;  // NOLINT(bugprone-reserved-identifier)

namespace crosstalk::in_target {
namespace {

constexpr std::uint64_t largest_stack = 1ULL << 30U;

void* map_shared(long fd, std::size_t bytes) {
  const long at = system_call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  return at < 0 ? nullptr : reinterpret_cast<void*>(at);  // NOLINT: the kernel's answer
}

struct ArenaShape {
  std::size_t rings_offset = 0;
  std::uint32_t slot_count = 0, ring_bytes = 0;
};

bool is_at_least(int resource, std::uint64_t least) {
  rlimit64 limit{};
  return system_call(SYS_prlimit64, 0, resource, nullptr, &limit) == 0 && limit.rlim_cur >= least;
}

// Checks limits other than those of memory, for which the memory in use counts, too (has_room_for()).
bool limits_leave_room() {
  return is_at_least(RLIMIT_STACK, least_stack_limit) && is_at_least(RLIMIT_RTTIME, least_real_time_limit);
}

// True if it is an arena of a running session with room for this process's first needs. Maps the header only for this
// check.
bool check_arena(long fd, ArenaShape& shape) {
  struct stat status {};
  if (system_call(SYS_fstat, fd, &status) != 0 || status.st_size < static_cast<off_t>(sizeof(profile::ArenaHeader))) {
    return false;
  }
  auto* const header = static_cast<profile::ArenaHeader*>(map_shared(fd, sizeof(profile::ArenaHeader)));
  if (header == nullptr) {
    return false;
  }
  const bool running =
      profile::ArenaView{header}.valid(static_cast<std::size_t>(status.st_size)) &&
      header->state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(profile::SessionState::running);
  shape = {header->rings_offset, header->slot_count, header->ring_bytes};
  const bool room =
      limits_leave_room() &&
      has_room_for(shape.rings_offset + RingMemory::rings_a_chunk * profile::ring_stride(shape.ring_bytes));
  if (running && !room) {
    header->processes_without_room.fetch_add(1, std::memory_order_relaxed);
  }
  system_call(SYS_munmap, header, sizeof(profile::ArenaHeader));
  return running && room;
}

// Maps what comes before the rings.
bool map_arena_of(long fd) {
  Runtime& r = runtime();
  ArenaShape shape;
  if (!check_arena(fd, shape)) {
    return false;
  }
  auto* const memory = static_cast<std::byte*>(map_shared(fd, shape.rings_offset));
  if (memory == nullptr) {
    return false;
  }
  if (!r.rings.start(memory + shape.rings_offset, shape.slot_count, shape.ring_bytes)) {
    system_call(SYS_munmap, memory, shape.rings_offset);
    return false;
  }
  enter_own_memory(memory, shape.rings_offset);
  r.arena.header = reinterpret_cast<profile::ArenaHeader*>(memory);
  r.config = r.arena.header->config;
  r.memory = r.arena.header->memory;
  r.memory.events = r.memory.events <= profile::most_memory_events ? r.memory.events : 0;
  r.slot_count = shape.slot_count;
  return true;
}

}  // namespace

bool map_arena(const char* name) {
  const long fd = system_call(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  const bool mapped = map_arena_of(fd);
  if (mapped) {
    reserve_hidden_numbers(static_cast<int>(fd));
  }
  system_call(SYS_close, fd);
  return mapped;
}

namespace {

// The tail of a process_start: the executable's path, NUL, and the command line as the kernel has it.
std::size_t describe_process(char* out, std::size_t capacity) {
  constexpr std::size_t path_limit = 1024;
  std::size_t used = modules::program_path(out, path_limit - 1);
  out[used++] = 0;
  const long fd = system_call(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    const long got = system_call(SYS_read, fd, out + used, capacity - used);
    used += got > 0 ? static_cast<std::size_t>(got) : 0;
    system_call(SYS_close, fd);
  }
  return used;
}

}  // namespace

void write_process_start(bool after_fork) {
  char tail[4096];
  profile::ProcessStart record;
  record.header.type = profile::RecordType::process_start;
  record.time_ns = monotonic_ns();
  record.pid = runtime().pid;
  record.parent_pid = static_cast<std::int32_t>(system_call(SYS_getppid));
  record.after_fork = after_fork ? 1 : 0;
  record.registers_free = runtime().config.watchpoints_allowed != 0 ? runtime().config.watchpoints : 0;
  record.observation = runtime().injected ? profile::Observation::injected : profile::Observation::preloaded;
  emit(&record, sizeof record, tail, describe_process(tail, sizeof tail));
}

namespace {

ThreadState* begin_main_thread() {
  const auto high = reinterpret_cast<std::uint64_t>(__libc_stack_end);
  rlimit64 limit{};
  system_call(SYS_prlimit64, 0, RLIMIT_STACK, nullptr, &limit);
  const std::uint64_t bytes = limit.rlim_cur < largest_stack ? limit.rlim_cur : largest_stack;
  return begin_thread(high - bytes, high, fs_base());
}

// Starts observing this process, whose runtime is configured and whose registry is empty.
bool begin_process(bool after_fork) {
  Runtime& r = runtime();
  r.pid = kernel_process_id();
  raise_limits_in(r.pid);
  mend_inherited_limit();
  ThreadState* self = begin_main_thread();
  if (self == nullptr) {
    return false;
  }
  write_process_start(after_fork);
  self->handler_stack = lend_handler_stack();
  r.observing.store(true, std::memory_order_release);
  start_clock(*self);
  return true;
}

/// Adds the CPU time of our start to the cost of observing. The budget does not pay for it, since it does not go on: a
/// brief program would not be watched at all.
void count_start(std::uint64_t begin_ns) {
  if (const ThreadState* self = current_thread(); self != nullptr) {
    self->slot->handlers_ns.fetch_add(thread_cpu_ns() - begin_ns, std::memory_order_relaxed);
  }
}

// ---- fork

// A thread's state during another thread's fork stays in the child for ever: a raised limit, the loader's lock.
void before_fork() {
  hold_limit_for_fork();
  hold_modules_for_fork();
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

namespace {

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
  if (begin_process(true)) {
    count_start(begin_ns);
  }
}

}  // namespace

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

// ---- load and exit

const char* why_not_observed(std::int32_t recorder) {
  TaskStatus status;
  TaskStatus of_recorder;
  const bool known = read_task_status(0, status);
  if (known && status.tracer != 0) {
    return "a program that another one traces (a debugger?) is not observed: it would be stopped at each of our "
           "signals";
  }
  if (known && status.seccomp_filters != 0 && read_process_status(recorder, of_recorder) &&
      status.seccomp_filters > of_recorder.seccomp_filters) {
    return "a program that was started inside a seccomp filter is not observed: the filter might kill it for it";
  }
  const DirectCalls direct = find_direct_calls();
  if (direct.confines) {
    return "a program that enters a seccomp filter, or has its system calls handed to itself, by an instruction of its "
           "own is not observed: what we call might kill it";
  }
  if (direct.signals) {
    return "a program that sets handlers or masks of signals by an instruction of its own (a Go program?) is not "
           "observed: it would be sent signals that it does not expect";
  }
  return nullptr;
}

namespace {

// The profile has the process and the reason.
void stay_out(const char* reason) {
  Runtime& r = runtime();
  r.pid = kernel_process_id();
  if (ThreadState* self = begin_main_thread(); self != nullptr) {
    write_process_start(false);
    emit_message("not_observed", reason);
    end_thread(*self);
  }
  track_blocks(false, 0);
}

}  // namespace

void find_fast_clock() {
  int mode = PR_TSC_ENABLE;  // as the process that has executed this one left it
  system_call(SYS_prctl, PR_GET_TSC, &mode, 0, 0, 0);
  if (mode == PR_TSC_ENABLE) {
    vdso_clock_gettime.store(reinterpret_cast<ClockGettime>(next_definition("__vdso_clock_gettime")));  // NOLINT
  }
}

namespace {

/// glibc hands all constructors the environment. It leaves `environ` null, for ever, if a library that is initialized
/// before all others (-z initfirst) loads another one. Then the program finds it as it would without us.
class Environment {
 public:
  explicit Environment(char** handed) : missing_(::environ == nullptr) {
    if (missing_) {
      ::environ = handed;
    }
  }
  ~Environment() {
    if (missing_) {
      ::environ = nullptr;
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  bool missing_;
};

__attribute__((constructor(101))) void on_load(int, char**, char** handed) {
  const int saved_errno = errno;
  Runtime& r = runtime();
  const Environment environment(handed);
  const char* name = ::getenv(profile::arena_variable);
  const std::uint64_t begin_ns = name != nullptr ? thread_cpu_ns() : 0;
  prepare_real_functions();
  find_off_limits();
  if (name == nullptr || !map_arena(name)) {
    track_blocks(false, 0);
    errno = saved_errno;
    return;
  }
  find_fast_clock();
  prepare_to_look_ahead();
  remember_environment();
  prepare_exec_wrappers();
  if (!in_recorders_pid_namespace()) {
    r.foreign.store(true, std::memory_order_relaxed);
    track_blocks(false, 0);
    errno = saved_errno;
    return;
  }
  if (const char* reason = why_not_observed(r.arena.header->recorder_pid); reason != nullptr) {
    stay_out(reason);
    errno = saved_errno;
    return;
  }
  own_signals(SIGTRAP);
  adopt_handlers();
  install_handlers();
  r.budget.start(r.config.budget, &cross_process_state().budget);
  const std::uint32_t words = r.config.watchpoints_allowed != 0 ? r.config.watchpoints : 0;
  lead_watchpoints_astray(r.config.dead_watchpoints != 0);
  watch_unit().start(words, r.config.horizon_ns);
  board().start(r.config.board_slots);
  end_threads_with_a_key();
  watch_forks();
  if (begin_process(false)) {
    hide_environment();
    track_blocks(true, r.config.heap_threshold);
    adopt_thread_mask();
    on_module_change();
    count_start(begin_ns);
  } else {
    track_blocks(false, 0);
  }
  errno = saved_errno;
}

__attribute__((destructor(101))) void on_exit_of_process() {
  Runtime& r = runtime();
  if (!observing() || kernel_process_id() != r.pid) {
    return;
  }
  const int saved_errno = errno;
  const OwnFloatState float_state;
  on_module_change();
  report_jit_dump();
  ThreadState* self = current_thread();
  if (self != nullptr) {
    withdraw_threads();
    watch_unit().close_all(*self, profile::CloseReason::stopped);
    profile::ProcessEnd record;
    record.header.type = profile::RecordType::process_end;
    record.time_ns = monotonic_ns();
    record.pid = r.pid;
    append(*self, &record, sizeof record, nullptr, 0);
    end_thread(*self);
  }
  errno = saved_errno;
}

// Stops all clocks and watches of the process; the other threads' clocks stop by the flag, and no other process arms
// any of them.
void quiesce() {
  Runtime& r = runtime();
  r.quiesced.store(true, std::memory_order_seq_cst);
  withdraw_threads();
  if (ThreadState* self = current_thread(); self != nullptr) {
    watch_unit().close_all(*self, profile::CloseReason::stopped);
    stop_clock(*self);
    // Its clocks go on in the executed program: the time up to here belongs to this one.
    self->slot->cpu_ns.store(thread_cpu_ns() - self->cpu_before_ns, std::memory_order_relaxed);
  }
}

}  // namespace

void before_exec() {
  const OwnFloatState float_state;
  profile::ProcessEnd record;
  record.header.type = profile::RecordType::process_end;
  record.time_ns = monotonic_ns();
  record.pid = runtime().pid;
  record.exec = 1;
  quiesce();
  emit(&record, sizeof record, nullptr, 0);
}

void exec_failed() {
  const OwnFloatState float_state;
  Runtime& r = runtime();
  if (!observing()) {  // it has stepped aside meanwhile
    return;
  }
  // The other threads' clocks were never stopped: their ticks count again. For the recorder this is the same process. A
  // second process_start would make it take all other threads' rings for those of an earlier program.
  r.quiesced.store(false, std::memory_order_seq_cst);
  readmit_threads();
  if (ThreadState* self = current_thread(); self != nullptr) {
    start_clock(*self);
  }
}

void on_trap_blocked() {
  if (!observing() || kernel_process_id() != runtime().pid) {
    return;
  }
  const Passage passage;
  if (ThreadState* self = current_thread(); self != nullptr && !self->blocks_traps) {
    self->blocks_traps = self->watch_tried = true;
    end_watching(*self);
  }
}

bool next_program_has_room() {
  if (limits_leave_room() && is_at_least(RLIMIT_AS, least_memory_limit) &&
      is_at_least(RLIMIT_DATA, least_memory_limit)) {
    return true;
  }
  if (profile::ArenaHeader* const header = runtime().arena.header; header != nullptr) {
    header->processes_without_room.fetch_add(1, std::memory_order_relaxed);
  }
  return false;
}

bool confined() {
  const std::int32_t who = runtime().confined_pid.load(std::memory_order_relaxed);
  return who != 0 && (!observing() || who == kernel_process_id());
}

bool may_make_system_calls() {
  return (observing() || runtime().foreign.load(std::memory_order_relaxed)) && !confined();
}

void on_seccomp() {
  if (session_config() != nullptr) {
    runtime().confined_pid.store(kernel_process_id(), std::memory_order_relaxed);
  }
  if (observing() && kernel_process_id() == runtime().pid) {  // else a vfork child is about to confine itself
    step_aside("seccomp", "the program confines itself with seccomp: it is not observed from then on",
               StepAside::without_trace);
  }
}

void on_traced() {
  if (observing() && kernel_process_id() == runtime().pid) {
    step_aside("traced", "the program lets itself be traced: it is not observed from then on",
               StepAside::without_trace);
  }
}

void on_user_dispatch() {
  if (observing() && kernel_process_id() == runtime().pid) {
    step_aside("user_dispatch",
               "the program has its system calls handed to itself (PR_SET_SYSCALL_USER_DISPATCH): it is not observed "
               "from then on",
               StepAside::without_trace);
  }
}

void on_breakpoint_wanted() {
  if (observing() && kernel_process_id() == runtime().pid) {
    forgo_watchpoints("breakpoints_wanted",
                      "the program opens breakpoints of its own: communication is not observed in it from then on");
  }
}

void on_own_descriptors(bool new_thread) {
  if (observing() && kernel_process_id() == runtime().pid && (new_thread || registry().live() > 1)) {
    forgo_descriptors(
        "own_descriptors",
        "a thread of the program has descriptors of its own, apart from the others': communication is not "
        "observed from then on");
  }
}

void on_limit_raised() {
  const Passage passage;
  if (!observing() || kernel_process_id() != runtime().pid) {
    return;
  }
  if (ThreadState* self = current_thread(); self != nullptr) {
    watch_unit().close_all(*self, profile::CloseReason::stopped);
  }
  for (std::uint32_t i = 0; i < registry().extent(); ++i) {
    ThreadState& thread = registry().at(i);
    if (thread.phase.load(std::memory_order_acquire) == static_cast<std::uint32_t>(ThreadPhase::live)) {
      renew_events(thread);
      forgo_perf_clock(thread);
      MemoryEvents::close(thread);  // opened again, under other numbers, when its clock is next reviewed
    }
  }
  watch_unit().renew_remote_events();
}

void on_unmap(std::uint64_t begin, std::uint64_t bytes) {
  if (holds_kernel_clocks(begin, bytes)) {
    forgo_vdso();
  }
}

bool on_signal_limit() {
  return observing() && kernel_process_id() == runtime().pid &&
         forgo_timers("signal_limit",
                      "the program needs all pending signals that its limit (ulimit -i) allows: threads without a perf "
                      "clock are not sampled from then on");
}

void on_signal_taken(int signal_number) {
  if (!observing() || kernel_process_id() != runtime().pid) {
    return;
  }
  if (signal_number == clock_signal) {
    forgo_timers("clock_signal_used", "the program uses signal 32, which the clocks of most threads need");
    release_clock_signal();
  } else {
    step_aside("sigtrap_used", "the program takes SIGTRAP by a system call of its own: it is not observed from then on",
               StepAside::without_trace);
  }
}

}  // namespace crosstalk::in_target
