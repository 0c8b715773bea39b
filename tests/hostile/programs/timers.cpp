// SPDX-License-Identifier: Apache-2.0
// The program's own timers, and the number of foreign ones in its process: each takes one from RLIMIT_SIGPENDING, and
// each that expires while its thread sleeps is delivered when the thread wakes.
#include <linux/io_uring.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "hostile.h"

namespace {

using namespace hostile;

/// The threads of a library's constructor (early_threads.cpp), which sleep all the time.
extern "C" int early_threads_started();

/// A profiler may take one timer a thread, which must be deleted when the thread ends.
void say_timers() { say("more timers than threads: %s", yes(timers_in_kernel() > threads_in_kernel())); }

int early_threads(int, char**) {
  exchange(0.5);
  say("threads %d of %d", threads_in_kernel(), early_threads_started() + 1);
  say_timers();
  return 0;
}

std::atomic<int> wake{0};

/// A thread that no function of libc knows, and that sleeps until `wake` is set. It does not use its stack.
void start_raw_sleeper() {
  constexpr long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  static long stack[16];
  long result = SYS_clone;
  asm volatile(
      "xor %%edx, %%edx\n"
      "xor %%r10d, %%r10d\n"
      "xor %%r8d, %%r8d\n"
      "syscall\n"
      "test %%eax, %%eax\n"
      "jnz 2f\n"
      "1: mov %[futex], %%eax\n"
      "mov %[wake], %%rdi\n"
      "xor %%esi, %%esi\n"  // FUTEX_WAIT
      "xor %%edx, %%edx\n"  // while it is 0
      "xor %%r10d, %%r10d\n"
      "syscall\n"
      "cmpl $0, (%[wake])\n"
      "je 1b\n"
      "mov %[exit], %%eax\n"
      "xor %%edi, %%edi\n"
      "syscall\n"
      "2:"
      : "+a"(result)
      : "D"(flags), "S"(&stack[8]), [wake] "r"(&wake), [futex] "i"(SYS_futex), [exit] "i"(SYS_exit)
      : "rcx", "rdx", "r8", "r10", "r11", "memory");
  require(result > 0, "clone");
}

int raw_sleepers(int, char**) {
  for (int n = 0; n < 16; ++n) {
    start_raw_sleeper();
  }
  exchange(0.5);
  say("threads %d", threads_in_kernel());
  say_timers();
  wake = 1;
  syscall(SYS_futex, &wake, 1 /* FUTEX_WAKE */, 16, nullptr, nullptr, 0);
  return 0;
}

/// Reads of an empty pipe by the kernel's worker threads, which are threads of this process.
int uring_workers(int, char**) {
  constexpr unsigned entries = 16;
  io_uring_params parameters{};
  const int ring = static_cast<int>(syscall(SYS_io_uring_setup, entries, &parameters));
  require(ring >= 0, "io_uring_setup");
  char* queue = static_cast<char*>(mmap(nullptr, parameters.sq_off.array + entries * 4, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING));
  auto* requests = static_cast<io_uring_sqe*>(mmap(nullptr, entries * sizeof(io_uring_sqe), PROT_READ | PROT_WRITE,
                                                   MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES));
  int ends[2];
  require(pipe(ends) == 0, "pipe");
  static char bytes[entries];
  auto* index = reinterpret_cast<unsigned*>(queue + parameters.sq_off.array);
  for (unsigned n = 0; n < entries; ++n) {
    requests[n] = io_uring_sqe{};
    requests[n].opcode = IORING_OP_READ;
    requests[n].flags = IOSQE_ASYNC;
    requests[n].fd = ends[0];
    requests[n].addr = reinterpret_cast<std::uintptr_t>(&bytes[n]);
    requests[n].len = 1;
    index[n] = n;
  }
  __atomic_store_n(reinterpret_cast<unsigned*>(queue + parameters.sq_off.tail), entries, __ATOMIC_RELEASE);
  require(syscall(SYS_io_uring_enter, ring, entries, 0, 0, nullptr, 0) == entries, "io_uring_enter");
  exchange(0.5);
  say_timers();
  const std::string letters(entries, 'x');
  require(write(ends[1], letters.data(), entries) == static_cast<ssize_t>(entries), "write");
  require(syscall(SYS_io_uring_enter, ring, 0, entries, IORING_ENTER_GETEVENTS, nullptr, 0) == 0, "wait");
  say("read %s", std::string(bytes, entries).c_str());
  return 0;
}

/// Has to run as a user of its own: the limit counts the signals and timers of all processes of a user.
int until_refused(int, char**) {
  rlimit limit{};
  getrlimit(RLIMIT_SIGPENDING, &limit);
  limit.rlim_cur = 64;
  require(setrlimit(RLIMIT_SIGPENDING, &limit) == 0, "setrlimit");
  const Burners burners(4);
  exchange(0.15);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGRTMIN;
  int made = 0;
  for (timer_t timer; timer_create(CLOCK_MONOTONIC, &event, &timer) == 0; ++made) {
  }
  say("%d timers, then %s", made, std::strerror(errno));
  return 0;
}

/// Threads that come and go must not leave timers behind.
int churn(int, char**) {
  const Burners burners(1);
  for (int n = 0; n < 80; ++n) {
    std::thread([] { burn(0.004); }).join();
  }
  say_timers();
  return 0;
}

volatile std::sig_atomic_t ticks = 0;
volatile std::sig_atomic_t strangers = 0;
void count_tick(int, siginfo_t* info, void*) {
  ticks = ticks + 1;
  strangers = strangers + (info->si_code == SI_KERNEL ? 0 : 1);
}

void every_ms(int which, int ms) {
  const itimerval every{{0, ms * 1000}, {0, ms * 1000}};
  require(setitimer(which, &every, nullptr) == 0, "setitimer");
}

/// Works until an interval timer of 10 ms has ticked 20 times. The kernel counts CPU time in its own ticks here, which
/// on a busy machine rarely hit a thread: so no duration is checked.
int count_ticks(int which, int signal_number) {
  handle(signal_number, count_tick, SA_RESTART);
  exchange(0.1);
  every_ms(which, 10);
  const double begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  while (ticks < 20 && seconds_of(CLOCK_PROCESS_CPUTIME_ID) < begin + 10) {
    exchange(0.02);
  }
  const double used = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
  say("ticked: %s, faster than it may: %s, from elsewhere: %d", yes(ticks >= 20), yes(used < 0.5 * 20 * 0.010),
      static_cast<int>(strangers));
  return 0;
}

int profiling_ticks(int, char**) { return count_ticks(ITIMER_PROF, SIGPROF); }
int virtual_ticks(int, char**) { return count_ticks(ITIMER_VIRTUAL, SIGVTALRM); }

/// Each call that is interrupted is so by an alarm.
int alarms_interrupt(int, char**) {
  handle(SIGALRM, count_tick);
  exchange(0.2);
  const Burners burners(2);
  int interrupted = 0;
  every_ms(ITIMER_REAL, 10);
  // The alarm goes to any thread that does not block it; the burners' would not interrupt this one.
  while (ticks < 60) {
    const timespec span{5, 0};
    const auto before = ticks;
    if (nanosleep(&span, nullptr) != 0 && errno == EINTR && ticks == before) {
      ++interrupted;
    }
  }
  every_ms(ITIMER_REAL, 0);
  say("interrupted by something else than an alarm: %d", interrupted);
  return 0;
}

volatile std::sig_atomic_t cpu_limit_ticks = 0;
void count_cpu_limit(int) { cpu_limit_ticks = cpu_limit_ticks + 1; }

int cpu_limit(int, char**) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{1, RLIM_INFINITY};
    setrlimit(RLIMIT_CPU, &limit);
    handle(SIGXCPU, count_cpu_limit, SA_RESTART);
    exchange(0.2);
    const bool early = cpu_limit_ticks != 0;
    for (int n = 0; n < 100 && cpu_limit_ticks == 0; ++n) {
      exchange(0.02);
    }
    say("SIGXCPU too early: %s, came: %d", yes(early), static_cast<int>(cpu_limit_ticks));
    _exit(3);
  }
  say("child: %s", end_of(child).c_str());
  return 0;
}

std::atomic<int> thread_calls{0};
/// A timer of each kind of notification and clock notifies as specified.
int own_timers(int, char**) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGRTMIN + 1);
  sigaddset(&blocked, SIGRTMAX);
  sigaddset(&blocked, SIGRTMAX - 1);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  const struct {
    clockid_t clock;
    int number;
  } kinds[] = {
      {CLOCK_MONOTONIC, SIGRTMIN + 1}, {CLOCK_THREAD_CPUTIME_ID, SIGRTMAX - 1}, {CLOCK_PROCESS_CPUTIME_ID, SIGRTMAX}};
  for (const auto& kind : kinds) {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = kind.number;
    event.sigev_value.sival_int = 1234;
    timer_t timer{};
    require(timer_create(kind.clock, &event, &timer) == 0, "timer_create");
    const itimerspec once{{0, 0}, {0, 50'000'000}};
    require(timer_settime(timer, 0, &once, nullptr) == 0, "timer_settime");
    exchange(0.08);
    const timespec none{};
    siginfo_t info{};
    int got = sigtimedwait(&blocked, &info, &none);
    for (int n = 0; n < 50 && got < 0; ++n) {  // ticks of a busy machine may all meet others
      exchange(0.02);
      got = sigtimedwait(&blocked, &info, &none);
    }
    say("clock %d: got the signal: %s, value %d, from a timer: %s, once: %s", kind.clock, yes(got == kind.number),
        info.si_value.sival_int, yes(info.si_code == SI_TIMER), yes(sigtimedwait(&blocked, &info, &none) < 0));
    timer_delete(timer);
  }
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = [](sigval value) { thread_calls += value.sival_int; };
  event.sigev_value.sival_int = 7;
  timer_t timer{};
  require(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create");
  const itimerspec once{{0, 0}, {0, 10'000'000}};
  timer_settime(timer, 0, &once, nullptr);
  exchange(0.1);
  say("notified by a thread: %d", thread_calls.load());
  return 0;
}

/// Timers read back as they were set.
int interval_timers_as_read(int, char**) {
  for (const int which : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    itimerval now{};
    getitimer(which, &now);
    const bool unset = now.it_value.tv_sec == 0 && now.it_value.tv_usec == 0;
    const itimerval far{{100, 0}, {200, 0}};
    setitimer(which, &far, nullptr);
    exchange(0.1);
    getitimer(which, &now);
    say("timer %d: unset before: %s, interval %ld s, counts down: %s", which, yes(unset),
        static_cast<long>(now.it_interval.tv_sec), yes(now.it_value.tv_sec >= 190 && now.it_value.tv_sec < 200));
  }
  return 0;
}

/// More threads than a profiler's tables may hold; almost all sleep.
int thousands_of_threads(int, char** argv) {
  const int count = std::stoi(argv[0]);
  std::atomic<int> started{0};
  std::vector<pthread_t> threads(static_cast<std::size_t>(count));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  for (pthread_t& thread : threads) {
    const auto body = [](void* counter) -> void* {
      ++*static_cast<std::atomic<int>*>(counter);
      while (wake == 0) {
        syscall(SYS_futex, &wake, 0 /* FUTEX_WAIT */, 0, nullptr, nullptr, 0);
      }
      return nullptr;
    };
    require(pthread_create(&thread, &attributes, body, &started) == 0, "pthread_create");
  }
  exchange(0.3);
  say("threads started: %s", yes(started == count));
  say_timers();
  wake = 1;
  syscall(SYS_futex, &wake, 1 /* FUTEX_WAKE */, count, nullptr, nullptr, 0);
  for (const pthread_t thread : threads) {
    pthread_join(thread, nullptr);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"early_threads", early_threads},
                   {"raw_sleepers", raw_sleepers},
                   {"uring_workers", uring_workers},
                   {"until_refused", until_refused},
                   {"churn", churn},
                   {"profiling_ticks", profiling_ticks},
                   {"virtual_ticks", virtual_ticks},
                   {"alarms_interrupt", alarms_interrupt},
                   {"cpu_limit", cpu_limit},
                   {"own_timers", own_timers},
                   {"interval_timers_as_read", interval_timers_as_read},
                   {"thousands_of_threads", thousands_of_threads}},
                  argc, argv);
}
