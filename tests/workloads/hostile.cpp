// SPDX-License-Identifier: Apache-2.0
// Programs that disturb other code in their process. Each prints its observations, so that a recorded run can be
// compared with a bare one, byte for byte.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "workload.h"

namespace {

using workload::Deadline;

struct alignas(workload::line_bytes) Shared {
  std::uint64_t words[2] = {};
};
Shared shared;

/// Two threads that share a line for a while, so that there is something to observe.
void work(double seconds) {
  const Deadline deadline(seconds);
  workload::run_crew(2, [&](int index) {
    for (std::uint32_t n = 0; (n & 1023U) != 0 || !deadline.passed(); ++n) {
      __atomic_store_n(&shared.words[index - 1], n, __ATOMIC_RELAXED);
    }
  });
}

void say(const char* text) {
  if (write(STDOUT_FILENO, text, std::strlen(text)) < 0) {
    _exit(90);
  }
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    count += fcntl(fd, F_GETFD) != -1 ? 1 : 0;
  }
  return count;
}

int close_all_one_by_one() {
  for (int fd = 3; fd < 65536; ++fd) {
    close(fd);
  }
  work(0.4);
  const int fresh = open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::printf("first free descriptor %d, open %zu\n", fresh, open_descriptors());
  return 0;
}

int close_range_all() {
  work(0.2);
  syscall(SYS_close_range, 3U, ~0U, 0U);
  work(0.4);
  std::printf("first free descriptor %d\n", open("/dev/null", O_RDONLY | O_CLOEXEC));
  return 0;
}

int count_descriptors() {
  work(0.2);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  std::printf("open %zu, limit %llu\n", open_descriptors(), static_cast<unsigned long long>(limit.rlim_cur));
  return 0;
}

int few_descriptors() {
  rlimit limit{8, 8};
  setrlimit(RLIMIT_NOFILE, &limit);
  work(0.4);
  int opened = 0;
  while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
    ++opened;
  }
  std::printf("%d descriptors could be opened\n", opened);
  return 0;
}

int block_all_signals() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  work(0.4);
  sigset_t now;
  sigset_t pending;
  sigprocmask(SIG_SETMASK, nullptr, &now);
  sigpending(&pending);
  int blocked = 0;
  for (int number = 1; number < 32; ++number) {
    blocked += sigismember(&now, number) == 1 ? 1 : 0;
  }
  std::printf("blocked %d, SIGTRAP pending %d, first mask empty %d\n", blocked, sigismember(&pending, SIGTRAP),
              sigisemptyset(&before));
  return 0;
}

volatile std::sig_atomic_t traps_seen = 0;
void on_trap(int) { traps_seen = traps_seen + 1; }

int own_sigtrap_handler() {
  struct sigaction action {};
  action.sa_handler = on_trap;
  struct sigaction before {};
  sigaction(SIGTRAP, &action, &before);
  work(0.3);
  for (int n = 0; n < 1000; ++n) {
    __asm__ volatile("int3");
  }
  raise(SIGTRAP);
  work(0.3);
  struct sigaction now {};
  sigaction(SIGTRAP, nullptr, &now);
  std::printf("own traps %d, default before %d, mine now %d\n", static_cast<int>(traps_seen),
              before.sa_handler == SIG_DFL ? 1 : 0, now.sa_handler == on_trap ? 1 : 0);
  return 0;
}

struct Traces {
  std::uint64_t sum = 0, flags = 0;
};

/// Returns the stores of a loop, and all flags that it had.
[[gnu::noinline]] Traces store_much() {
  constexpr std::uint64_t rounds = 60'000'000;
  static std::uint64_t table[1024];
  std::uint64_t x = 88172645463325252U;
  Traces traces;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    x ^= x << 13U, x ^= x >> 7U, x ^= x << 17U;
    if ((x & 7U) == 0) {
      table[x >> 54U] += x ^ i;
    }
    std::uint64_t flags = 0;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n pushf\n pop %0\n lea 128(%%rsp), %%rsp" : "=r"(flags)::"memory");
    traces.flags |= flags;
  }
  for (const std::uint64_t value : table) {
    traces.sum = traces.sum * 31 + value;
  }
  return traces;
}

sigjmp_buf way_out;
void jump_from_alarm(int) { siglongjmp(way_out, 1); }

/// How often a loop was jumped out of.
[[gnu::noinline]] int jump_often() {
  struct sigaction action {};
  action.sa_handler = jump_from_alarm;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  static volatile int jumps = 0;
  static volatile std::uint64_t spins = 0;
  if (sigsetjmp(way_out, 1) != 0) {
    jumps = jumps + 1;
  }
  while (jumps < 200) {
    spins = spins + 1;
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  return jumps;
}

/// A lookahead through a program must leave no trace in it.
int stores_flags_and_jumps() {
  constexpr std::uint64_t trap_flag = 0x100;
  const Traces traces = store_much();
  std::printf("sum %llx, trap flag %d, ", static_cast<unsigned long long>(traces.sum),
              (traces.flags & trap_flag) != 0 ? 1 : 0);
  std::printf("jumps %d\n", jump_often());
  return 0;
}

int default_sigtrap() {
  work(0.2);
  say("about to trap\n");
  __asm__ volatile("int3");
  say("survived\n");
  return 0;
}

volatile std::sig_atomic_t on_own_stack = 0;
char* own_stack = nullptr;
void note_stack(int) {
  char here = 0;
  const char* where = &here;
  on_own_stack = where >= own_stack && where < own_stack + SIGSTKSZ * 4 ? 1 : 0;
}

int own_alternate_stack() {
  own_stack = static_cast<char*>(std::malloc(static_cast<std::size_t>(SIGSTKSZ) * 4));
  stack_t stack{};
  stack.ss_sp = own_stack;
  stack.ss_size = static_cast<std::size_t>(SIGSTKSZ) * 4;
  stack_t before{};
  sigaltstack(&stack, &before);
  struct sigaction action {};
  action.sa_handler = note_stack;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  work(0.3);
  raise(SIGUSR1);
  stack_t now{};
  sigaltstack(nullptr, &now);
  std::printf("handler on own stack %d, kept %d, none before %d\n", static_cast<int>(on_own_stack),
              now.ss_sp == own_stack ? 1 : 0, (before.ss_flags & SS_DISABLE) != 0 ? 1 : 0);
  return 0;
}

/// Returns an unmapped address, hidden from the compiler.
volatile int* nowhere() {
  volatile std::uintptr_t address = 16;
  return reinterpret_cast<volatile int*>(address);
}

sigjmp_buf escape;
void jump_out(int) { siglongjmp(escape, 1); }

int recover_from_segv() {
  struct sigaction action {};
  action.sa_handler = jump_out;
  sigaction(SIGSEGV, &action, nullptr);
  work(0.2);
  volatile int recovered = 0;
  while (recovered < 200) {
    if (sigsetjmp(escape, 1) == 0) {
      *nowhere() = 1;
    }
    recovered = recovered + 1;
  }
  work(0.2);
  std::printf("recovered %d\n", recovered);
  return 0;
}

volatile std::sig_atomic_t alarms = 0;
void on_alarm(int) { alarms = alarms + 1; }

int own_profiling_timer() {
  struct sigaction action {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval every{{0, 10000}, {0, 10000}};
  setitimer(ITIMER_PROF, &every, nullptr);
  work(0.5);
  std::printf("SIGPROF came %d\n", alarms > 5 ? 1 : 0);
  return 0;
}

/// errno must not change under a program's feet.
int errno_is_kept() {
  const Deadline deadline(0.6);
  std::atomic<bool> wrong{false};
  workload::run_crew(2, [&](int index) {
    errno = 1000 + index;
    while (!deadline.passed()) {
      __atomic_fetch_add(&shared.words[0], 1U, __ATOMIC_RELAXED);
      if (errno != 1000 + index) {
        wrong = true;
      }
    }
  });
  std::printf("errno wrong %d\n", wrong.load() ? 1 : 0);
  return 0;
}

int interrupted_calls() {
  std::atomic<bool> interrupted{false};
  std::thread sleeper([&] {
    timespec span{0, 700'000'000};
    if (nanosleep(&span, nullptr) != 0) {
      interrupted = true;
    }
  });
  work(0.5);
  sleeper.join();
  std::printf("a sleep was interrupted %d\n", interrupted.load() ? 1 : 0);
  return 0;
}

/// Enters a filter that answers `action` to all calls except those of an ordinary loop.
bool enter_sandbox(std::uint32_t action) {
  constexpr int allowed[] = {SYS_write,      SYS_exit,          SYS_exit_group, SYS_rt_sigreturn, SYS_futex,
                             SYS_newfstatat, SYS_clock_gettime, SYS_brk,        SYS_munmap,       SYS_mmap};
  std::vector<sock_filter> program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int number : allowed) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, action));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Works until the time is up, with no threads and no system calls but the allowed ones.
void work_alone(double seconds) {
  const Deadline deadline(seconds);
  for (std::uint32_t n = 0; (n & 1023U) != 0 || !deadline.passed(); ++n) {
    __atomic_store_n(&shared.words[0], n, __ATOMIC_RELAXED);
  }
}

int sandbox_that_refuses() {
  work(0.2);
  const bool inside = enter_sandbox(SECCOMP_RET_ERRNO | EPERM);
  work_alone(0.4);
  say(inside ? "in the sandbox\n" : "no sandbox\n");
  return 0;
}

int sandbox_that_kills() {
  work(0.2);
  const bool inside = enter_sandbox(SECCOMP_RET_KILL_PROCESS);
  work_alone(0.4);
  say(inside ? "in the sandbox\n" : "no sandbox\n");
  return 0;
}

int change_root() {
  work(0.2);
  char folder[] = "/tmp/crosstalk-root-XXXXXX";
  if (mkdtemp(folder) == nullptr || chdir(folder) != 0) {
    return 91;
  }
  std::printf("chroot %d\n", chroot(folder) == 0 ? 1 : 0);
  rmdir(folder);
  work(0.4);
  return 0;
}

int change_user() {
  work(0.2);
  std::printf("setuid %d\n", setuid(geteuid() == 0 ? 65534 : getuid()));
  work(0.4);
  return 0;
}

int allocate_much() {
  workload::run_crew(2, [](int index) {
    std::vector<void*> blocks(4096, nullptr);
    std::uint32_t state = static_cast<std::uint32_t>(index);
    for (int n = 0; n < 2'000'000; ++n) {
      state = state * 1664525U + 1013904223U;
      void*& block = blocks[state >> 20U];
      std::free(block);
      block = std::malloc(16 + (state & 1023U));
    }
    for (void* block : blocks) {
      std::free(block);
    }
  });
  say("allocated\n");
  return 0;
}

int end_thread_by_pthread_exit() {
  std::thread([] { work_alone(0.2); }).detach();
  say("main ends first\n");
  pthread_exit(nullptr);
}

int fork_often() {
  int failures = 0;
  const Deadline deadline(1.0);
  workload::run_crew(2, [&](int index) {
    if (index == 1) {
      work_alone(1.0);
      return;
    }
    for (int n = 0; n < 200 && !deadline.passed(); ++n) {
      const pid_t child = fork();
      if (child == 0) {
        _exit(n % 7);
      }
      int status = 0;
      failures += child < 0 || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != n % 7 ? 1 : 0;
    }
  });
  std::printf("failures %d\n", failures);
  return 0;
}

int exec_while_busy(char** argv) {
  std::thread([] { work_alone(10); }).detach();
  work_alone(0.2);
  std::string program = argv[0];
  std::string what = "count_descriptors";
  char* next[] = {program.data(), what.data(), nullptr};
  execv("/proc/self/exe", next);
  return 92;
}

int end_abruptly(const std::string& how) {
  work(0.3);
  say("so long\n");
  if (how == "_exit") {
    _exit(42);
  }
  if (how == "quick_exit") {
    std::quick_exit(43);
  }
  if (how == "abort") {
    std::abort();
  }
  if (how == "segv") {
    *nowhere() = 1;
  }
  if (how == "kill9") {
    kill(getpid(), SIGKILL);
  }
  if (how == "sigterm") {
    raise(SIGTERM);
  }
  if (how == "exit_group_from_thread") {
    std::thread([] { std::exit(44); }).join();
  }
  return 93;
}

struct Behaviour {
  const char* name;
  int (*run)();
};
constexpr Behaviour behaviours[] = {
    {"close_all_one_by_one", close_all_one_by_one},
    {"close_range_all", close_range_all},
    {"count_descriptors", count_descriptors},
    {"few_descriptors", few_descriptors},
    {"block_all_signals", block_all_signals},
    {"own_sigtrap_handler", own_sigtrap_handler},
    {"stores_flags_and_jumps", stores_flags_and_jumps},
    {"default_sigtrap", default_sigtrap},
    {"own_alternate_stack", own_alternate_stack},
    {"recover_from_segv", recover_from_segv},
    {"own_profiling_timer", own_profiling_timer},
    {"errno_is_kept", errno_is_kept},
    {"interrupted_calls", interrupted_calls},
    {"sandbox_that_refuses", sandbox_that_refuses},
    {"sandbox_that_kills", sandbox_that_kills},
    {"change_root", change_root},
    {"change_user", change_user},
    {"allocate_much", allocate_much},
    {"end_thread_by_pthread_exit", end_thread_by_pthread_exit},
    {"fork_often", fork_often},
};
constexpr const char* abrupt_ends[] = {
    "_exit", "quick_exit", "abort", "segv", "kill9", "sigterm", "exit_group_from_thread"};

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string what = argc == 2 ? argv[1] : "";
  if (what == "list") {
    for (const auto& behaviour : behaviours) {
      std::printf("%s\n", behaviour.name);
    }
    for (const char* name : abrupt_ends) {
      std::printf("%s\n", name);
    }
    std::printf("exec_while_busy\n");
    return 0;
  }
  for (const auto& behaviour : behaviours) {
    if (what == behaviour.name) {
      return behaviour.run();
    }
  }
  for (const char* name : abrupt_ends) {
    if (what == name) {
      return end_abruptly(what);
    }
  }
  if (what == "exec_while_busy") {
    return exec_while_busy(argv);
  }
  std::fprintf(stderr, "hostile: '%s' is no behaviour; `hostile list` names them\n", what.c_str());
  return 2;
}
