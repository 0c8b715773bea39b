// SPDX-License-Identifier: Apache-2.0
#include "collectors/facilities/watchpoint_trial.h"

#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <new>

#include "base/unique_fd.h"
#include "collectors/facilities/probe_perf.h"
#include "collectors/probe_system.h"

namespace crosstalk::collectors {

namespace {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define CROSSTALK_UNDER_SANITIZER
#endif
#elif defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CROSSTALK_UNDER_SANITIZER
#endif
#if defined(CROSSTALK_UNDER_SANITIZER)
constexpr bool under_sanitizer = true;
#else
constexpr bool under_sanitizer = false;
#endif

using Stage = TrialFindings::Stage;

/// Words in lines of their own: nobody uses the memory beside them.
struct alignas(64) TriedWord {
  std::uint64_t value = 0;
};
TriedWord tried_word, neighbour_word;

void store_to(std::uint64_t& word) { asm volatile("movq %1, %0" : "=m"(word) : "r"(std::uint64_t{1})); }
void load_from(const std::uint64_t& word) {
  std::uint64_t value = 0;
  asm volatile("movq %1, %0" : "=r"(value) : "m"(word));
}
void update_locked(std::uint64_t& word) {
  asm volatile("lock addq %1, %0" : "+m"(word) : "r"(std::uint64_t{1}) : "cc");
}

/// The kernel puts a blocked SIGTRAP of an event off, rather than kill.
bool blocked_traps_wait_by_release() {
  const auto version = parse_kernel_release(kernel_release());
  return version && *version >= KernelVersion{5, 19};
}

volatile std::sig_atomic_t trap_signals = 0;
void count_trap_signal(int /*signal*/) { trap_signals = trap_signals + 1; }

/// A watchpoint on `tried_word` that counts its reports, and sends no signal.
class CountingWatchpoint {
 public:
  explicit CountingWatchpoint(std::uint32_t type, pid_t thread = 0) {
    perf_event_attr attributes = watchpoint_attributes(reinterpret_cast<std::uint64_t>(&tried_word), 8);
    attributes.bp_type = type;
    attributes.sigtrap = 0;
    attributes.remove_on_exec = 0;
    attributes.sample_period = 0;
    attributes.disabled = 0;
    event_ = open_event(attributes, thread);
  }
  [[nodiscard]] int error() const { return event_.error; }
  /// Returns the number of reports since the last call.
  std::uint32_t fresh() {
    std::uint64_t count = 0;
    if (::read(event_.fd.get(), &count, sizeof count) != static_cast<ssize_t>(sizeof count)) {
      return 0;
    }
    const std::uint64_t more = count - known_;
    known_ = count;
    return static_cast<std::uint32_t>(more);
  }

 private:
  OpenedEvent event_;
  std::uint64_t known_ = 0;
};

constexpr std::uint32_t tries_of_each = 2;  // of each kind: an emulator may report the first and have it cached then

template <class Access>
void try_accesses(CountingWatchpoint& watch, TriedAccesses& tried, Access access) {
  for (std::uint32_t i = 0; i < tries_of_each; ++i) {
    access(tried_word.value);
  }
  tried.made += tries_of_each;
  tried.reported += watch.fresh();
}

constexpr std::uint32_t kinds_tried = 3;
/// As a thread without a sanitizer's knowledge can.
[[gnu::no_sanitize("thread", "address", "undefined")]] void make_all_kinds() {
  for (std::uint32_t i = 0; i < tries_of_each; ++i) {
    std::uint64_t value = 1;
    asm volatile("movq %0, %1\n\tmovq %1, %0\n\tlock addq %0, %1" : "+r"(value), "+m"(tried_word.value) : : "cc");
  }
}

/// False: no watchpoint can be opened.
bool try_own_accesses(TrialFindings& findings) {
  CountingWatchpoint both(HW_BREAKPOINT_RW);
  findings.open_error = both.error();
  if (findings.open_error != 0) {
    return false;
  }
  try_accesses(both, findings.store, store_to);
  try_accesses(both, findings.load, load_from);
  try_accesses(both, findings.locked, update_locked);
  for (std::uint32_t i = 0; i < tries_of_each; ++i) {
    store_to(neighbour_word.value);
  }
  findings.false_reports += both.fresh();
  return true;
}

/// A watchpoint for stores alone: watches end with one.
void try_stores_alone(TrialFindings& findings) {
  CountingWatchpoint stores(HW_BREAKPOINT_W);
  if (stores.error() != 0) {
    return;
  }
  try_accesses(stores, findings.store, store_to);
  for (std::uint32_t i = 0; i < tries_of_each; ++i) {
    load_from(tried_word.value);
  }
  findings.false_reports += stores.fresh();
}

/// A thread of the child that accesses the word when it is told to. It may have its maker's thread-local storage, so it
/// calls nothing that could fail, and nothing of a sanitizer's.
struct OtherThread {
  int tid = 0, watched = 0, done = 0;  // by atomic operations
  alignas(64) std::array<std::byte, 8192> stack;

  [[gnu::no_sanitize("thread", "address", "undefined")]] static int main(void* argument) {
    auto& self = *static_cast<OtherThread*>(argument);
    __atomic_store_n(&self.tid, static_cast<int>(::syscall(SYS_gettid)), __ATOMIC_RELEASE);
    while (__atomic_load_n(&self.watched, __ATOMIC_ACQUIRE) == 0) {
      ::sched_yield();
    }
    make_all_kinds();
    __atomic_store_n(&self.done, 1, __ATOMIC_RELEASE);
    return 0;
  }
  static void* main_of_pthread(void* argument) {
    main(argument);
    return nullptr;
  }
};

/// Flags for a child that shares its maker's memory: the C library takes it for the maker's thread, which may be busy
/// in the library.
constexpr int as_bare_thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;

/// errno of a failure.
int start_thread(OtherThread& other, bool shares_memory) {
  if (shares_memory) {
    return ::clone(&OtherThread::main, other.stack.data() + other.stack.size(), as_bare_thread, &other) < 0 ? errno : 0;
  }
  pthread_t thread{};
  return ::pthread_create(&thread, nullptr, &OtherThread::main_of_pthread, &other);
}

int await_nonzero(const int& value) {
  int now = 0;
  while ((now = __atomic_load_n(&value, __ATOMIC_ACQUIRE)) == 0) {
    ::sched_yield();
  }
  return now;
}

void try_other_thread(TrialFindings& findings, bool shares_memory) {
  OtherThread other;
  findings.thread_error = start_thread(other, shares_memory);
  if (findings.thread_error != 0) {
    return;
  }
  CountingWatchpoint watch(HW_BREAKPOINT_RW, await_nonzero(other.tid));
  findings.open_error = watch.error();
  __atomic_store_n(&other.watched, 1, __ATOMIC_RELEASE);
  await_nonzero(other.done);
  findings.other_thread = {kinds_tried * tries_of_each, watch.error() == 0 ? watch.fresh() : 0};
}

void try_signals(TrialFindings& findings) {
  trap_signals = 0;
  struct sigaction action {};
  action.sa_handler = count_trap_signal;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGTRAP, &action, nullptr);
  sigset_t trap;
  ::sigemptyset(&trap);
  ::sigaddset(&trap, SIGTRAP);
  ::sigprocmask(SIG_UNBLOCK, &trap, nullptr);
  perf_event_attr attributes = watchpoint_attributes(reinterpret_cast<std::uint64_t>(&tried_word), 8);
  attributes.disabled = 0;
  const OpenedEvent event = open_event(attributes);
  findings.signal_error = event.error;
  make_all_kinds();
  findings.signal = {kinds_tried * tries_of_each, static_cast<std::uint32_t>(trap_signals)};
}

struct Assigned {
  TrialFindings& findings;
  bool shares_memory = false;  // with the process that made it
};

int trial_main(void* argument) {
  const auto& [findings, shares_memory] = *static_cast<const Assigned*>(argument);
  findings.stage = Stage::own_accesses;
  if (try_own_accesses(findings)) {
    try_stores_alone(findings);
    findings.stage = Stage::other_thread;
    try_other_thread(findings, shares_memory);
    findings.stage = Stage::signals;
    try_signals(findings);
  }
  findings.stage = Stage::tested;
  ::_exit(0);
}

/// Tests by page faults, which are possible on any machine, with or without debug registers: they send the same signal.
int blocked_signal_main(void* argument) {
  constexpr std::size_t page = 4096;
  TrialFindings& findings = static_cast<const Assigned*>(argument)->findings;
  ::prctl(PR_SET_DUMPABLE, 0);  // the kernel may kill us now, and nobody wants a core of that
  ::signal(SIGTRAP, SIG_DFL);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTRAP);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  auto* const fresh =
      static_cast<volatile char*>(::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  perf_event_attr attributes = page_fault_attributes();
  attributes.disabled = 0;
  const OpenedEvent event = open_event(attributes);
  if (fresh != MAP_FAILED && event.fd.valid()) {
    *fresh = 1;
    findings.blocked_signal_waits = ::sigpending(&signals) == 0 && ::sigismember(&signals, SIGTRAP) == 1;
  }
  ::_exit(0);
}

/// Waits for the child's end, which closes its end of the pipe, and sees to it that there is one.
TrialEnd end_of(pid_t child, int pipe, int limit_ms) {
  TrialEnd end;
  pollfd closed{pipe, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&closed, 1, limit_ms);
  } while (ready < 0 && errno == EINTR);
  end.too_late = ready <= 0;
  if (end.too_late) {
    ::kill(child, SIGKILL);
  }
  int status = 0;
  pid_t waited = 0;
  do {
    waited = ::waitpid(child, &status, 0);
  } while (waited < 0 && errno == EINTR);
  end.signal = waited == child && WIFSIGNALED(status) && !end.too_late ? WTERMSIG(status) : 0;
  return end;
}

/// A child that shares our memory costs a fiftieth of one that copies it. But before Linux 5.16 a child whose death
/// makes a core kills all processes that share its memory, and the sanitizers keep threads' states in memory.
bool can_share_memory() { return !under_sanitizer && blocked_traps_wait_by_release(); }

/// Runs `work` in a child, which ends by itself.
TrialEnd run_child(int (*work)(void*), Assigned assigned, int limit_ms) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return {errno, 0, false};
  }
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  alignas(64) std::array<std::byte, 32768> stack;
  const pid_t child =
      assigned.shares_memory ? ::clone(work, stack.data() + stack.size(), CLONE_VM | SIGCHLD, &assigned) : ::fork();
  if (child < 0) {
    return {errno, 0, false};
  }
  if (child == 0) {
    work(&assigned);
  }
  writing.reset();
  return end_of(child, reading.get(), limit_ms);
}

}  // namespace

TrialOutcome try_watchpoints(int limit_ms) {
  constexpr std::size_t bytes = 4096;
  void* const shared = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  static_assert(sizeof(TrialFindings) <= bytes);
  if (shared == MAP_FAILED) {
    return {judge_trial({}, {errno, 0, false}), 0};
  }
  auto* const findings = new (shared) TrialFindings;
  const TrialEnd end = run_child(trial_main, {*findings, can_share_memory()}, limit_ms);
  TrialOutcome outcome{judge_trial(*findings, end), findings->open_error};
  ::munmap(shared, bytes);
  return outcome;
}

BlockedTrap try_blocked_trap(int limit_ms) {
  constexpr std::size_t bytes = 4096;
  void* const shared = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    return BlockedTrap::unknown;
  }
  auto* const findings = new (shared) TrialFindings;
  const TrialEnd end = run_child(blocked_signal_main, {*findings, false}, limit_ms);
  const BlockedTrap answer = judge_blocked_trap(*findings, end);
  ::munmap(shared, bytes);
  return answer;
}

bool blocked_traps_kill() { return !blocked_traps_wait_by_release() && try_blocked_trap() != BlockedTrap::waits; }

}  // namespace crosstalk::collectors
