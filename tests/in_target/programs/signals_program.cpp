// SPDX-License-Identifier: Apache-2.0
// The target may do anything to signals: it sees its own settings, the kernel keeps ours.
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "tests/in_target/guest_core.h"

namespace {

constexpr std::uint64_t ours = std::uint64_t{1} << (SIGTRAP - 1);

const auto owns = GUEST(guest_owns);
const auto kernel_mask = GUEST(guest_kernel_mask);

void handler(int /*signal_number*/) {}
void handler_with_info(int /*signal_number*/, siginfo_t* /*info*/, void* /*context*/) {}

void masks() {
  sigset_t all;
  sigset_t old_set;
  sigset_t none;
  sigfillset(&all);
  sigemptyset(&none);
  CHECK(sigprocmask(SIG_SETMASK, nullptr, &old_set) == 0 && sigismember(&old_set, SIGTRAP) == 0);
  CHECK(sigprocmask(SIG_BLOCK, &all, &old_set) == 0);
  CHECK(sigismember(&old_set, SIGTRAP) == 0);
  CHECK((kernel_mask() & ours) == 0 && (kernel_mask() & 1U << (SIGUSR1 - 1)) != 0);
  CHECK(pthread_sigmask(SIG_BLOCK, nullptr, &old_set) == 0);
  CHECK(sigismember(&old_set, SIGTRAP) == 1 && sigismember(&old_set, SIGRTMAX) == 1);
  sigset_t trap = none;
  sigaddset(&trap, SIGTRAP);
  CHECK(pthread_sigmask(SIG_UNBLOCK, &trap, &old_set) == 0 && sigismember(&old_set, SIGTRAP) == 1);
  CHECK(sigprocmask(SIG_BLOCK, nullptr, &old_set) == 0);
  CHECK(sigismember(&old_set, SIGTRAP) == 0 && sigismember(&old_set, SIGRTMAX) == 1);
  CHECK(pthread_sigmask(SIG_BLOCK, &trap, nullptr) == 0);
  CHECK(pthread_sigmask(SIG_SETMASK, &none, &old_set) == 0 && sigismember(&old_set, SIGTRAP) == 1);
  CHECK(pthread_sigmask(SIG_SETMASK, nullptr, &old_set) == 0 && sigismember(&old_set, SIGTRAP) == 0);
  CHECK(sigprocmask(77, &all, nullptr) == -1 && errno == EINVAL);
  CHECK(pthread_sigmask(77, &all, nullptr) == EINVAL);
  const sigset_t same = old_set;
  CHECK(sigprocmask(SIG_SETMASK, &same, &old_set) == 0);
}

bool trap_is_blocked() {
  sigset_t now;
  return pthread_sigmask(SIG_BLOCK, nullptr, &now) == 0 && sigismember(&now, SIGTRAP) == 1;
}

void set_trap(int how) {
  sigset_t trap;
  sigemptyset(&trap);
  sigaddset(&trap, SIGTRAP);
  CHECK(pthread_sigmask(how, &trap, nullptr) == 0);
}

// Restoring a mask restores the one in force when it was saved; an unsaved mask stays.
void masks_that_libc_keeps(bool blocked) {
  const int there = blocked ? SIG_BLOCK : SIG_UNBLOCK;
  const int here = blocked ? SIG_UNBLOCK : SIG_BLOCK;
  sigjmp_buf place;
  jmp_buf place_without;
  set_trap(there);
  if (sigsetjmp(place, 1) == 0) {
    set_trap(here);
    siglongjmp(place, 1);
  }
  CHECK(trap_is_blocked() == blocked && (kernel_mask() & ours) == 0);
  if (_setjmp(place_without) == 0) {
    set_trap(here);
    longjmp(place_without, 1);
  }
  CHECK(trap_is_blocked() != blocked && (kernel_mask() & ours) == 0);

  static volatile bool again;
  again = false;
  ucontext_t context{};
  set_trap(there);
  CHECK(getcontext(&context) == 0);
  if (!again) {
    again = true;
    set_trap(here);
    setcontext(&context);
  }
  CHECK(trap_is_blocked() == blocked && (kernel_mask() & ours) == 0);
  set_trap(SIG_UNBLOCK);
}

ucontext_t caller;
ucontext_t coroutine;

void in_the_coroutine() {
  CHECK(trap_is_blocked() && (kernel_mask() & ours) == 0);
  set_trap(SIG_UNBLOCK);
  swapcontext(&coroutine, &caller);
  CHECK(!trap_is_blocked());
}

// Each side has its own mask; the last switch is libc's own, at the coroutine's end.
void masks_of_coroutines() {
  static char stack[65536];
  CHECK(getcontext(&coroutine) == 0);
  coroutine.uc_stack = {static_cast<char*>(stack), 0, sizeof stack};
  coroutine.uc_link = &caller;
  sigaddset(&coroutine.uc_sigmask, SIGTRAP);
  makecontext(&coroutine, in_the_coroutine, 0);
  CHECK(swapcontext(&caller, &coroutine) == 0);
  CHECK(!trap_is_blocked());
  set_trap(SIG_BLOCK);
  CHECK(swapcontext(&caller, &coroutine) == 0);
  CHECK((kernel_mask() & ours) == 0);
  set_trap(SIG_UNBLOCK);
}

void* in_a_thread(void* shadow) {
  GUEST(guest_inherit_mask_shadow)(*static_cast<std::uint8_t*>(shadow));
  sigset_t now;
  CHECK(pthread_sigmask(SIG_BLOCK, nullptr, &now) == 0);
  CHECK(sigismember(&now, SIGTRAP) == 1 && (kernel_mask() & ours) == 0);
  return nullptr;
}

void masks_of_threads() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
  std::uint8_t shadow = GUEST(guest_mask_shadow)();
  pthread_t thread{};
  CHECK(pthread_create(&thread, nullptr, in_a_thread, &shadow) == 0);
  CHECK(pthread_join(thread, nullptr) == 0);
  CHECK(pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
  // Blocked outside of our filter: adopted.
  const std::uint64_t word = ours;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, &word, nullptr, 8);
  CHECK((kernel_mask() & ours) == ours);
  GUEST(guest_adopt_thread_mask)();
  CHECK((kernel_mask() & ours) == 0);
  sigset_t now;
  CHECK(pthread_sigmask(SIG_SETMASK, &before, &now) == 0 && sigismember(&now, SIGTRAP) == 1);
}

void trap_handlers() {
  struct sigaction action {};
  struct sigaction old_action {};
  CHECK(sigaction(SIGTRAP, nullptr, &old_action) == 0 && old_action.sa_handler == SIG_DFL);
  action.sa_sigaction = handler_with_info;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaddset(&action.sa_mask, SIGUSR2);
  CHECK(sigaction(SIGTRAP, &action, nullptr) == 0);
  CHECK(owns(SIGTRAP));
  CHECK(GUEST(guest_wished_trap_handler)() == reinterpret_cast<void*>(handler_with_info));
  CHECK(sigaction(SIGTRAP, nullptr, &old_action) == 0);
  CHECK(old_action.sa_sigaction == handler_with_info && old_action.sa_flags == action.sa_flags);
  CHECK(sigismember(&old_action.sa_mask, SIGUSR2) == 1);
  CHECK(signal(SIGTRAP, SIG_IGN) == old_action.sa_handler);
  CHECK(owns(SIGTRAP));
  CHECK(signal(SIGTRAP, handler) == SIG_IGN);
  CHECK(sigset(SIGTRAP, SIG_DFL) == handler);
  CHECK(signal(SIGTRAP, SIG_DFL) == SIG_DFL);
  raise(SIGTRAP);
  CHECK(GUEST(guest_count)(guest_trap) == 1);
}

void other_handlers() {
  struct sigaction action {};
  struct sigaction old_action {};
  action.sa_handler = handler;
  sigfillset(&action.sa_mask);
  CHECK(sigaction(SIGUSR1, &action, &old_action) == 0 && old_action.sa_handler == SIG_DFL);
  CHECK((GUEST(guest_kernel_action_mask)(SIGUSR1) & ours) == 0);
  CHECK((GUEST(guest_kernel_action_mask)(SIGUSR1) & 1U << (SIGUSR2 - 1)) != 0);
  CHECK(sigaction(SIGUSR1, nullptr, &old_action) == 0);
  CHECK(old_action.sa_handler == handler && sigismember(&old_action.sa_mask, SIGTRAP) == 1);
  CHECK(signal(SIGUSR1, SIG_DFL) == handler);
  CHECK(signal(1000, handler) == SIG_ERR && errno == EINVAL);
  CHECK(sigaction(SIGKILL, &action, nullptr) == -1 && errno == EINVAL);
}

void waiting() {
  sigset_t all;
  sigfillset(&all);
  const timespec shortly{0, 1'000'000};
  CHECK(ppoll(nullptr, 0, &shortly, &all) == 0);
  CHECK(pselect(0, nullptr, nullptr, nullptr, &shortly, &all) == 0);
  const int epoll = epoll_create1(0);
  epoll_event event{};
  CHECK(epoll_pwait(epoll, &event, 1, 1, &all) == 0);
  close(epoll);
  // A trap gets through while everything is blocked for the time of the call.
  const int before = GUEST(guest_count)(guest_trap);
  const pid_t child = fork();
  if (child == 0) {
    const timespec a_while{0, 20'000'000};
    nanosleep(&a_while, nullptr);
    kill(getppid(), SIGTRAP);
    _exit(0);
  }
  const timespec long_enough{5, 0};
  CHECK(ppoll(nullptr, 0, &long_enough, &all) == -1 && errno == EINTR);
  CHECK(GUEST(guest_count)(guest_trap) == before + 1);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
}

void a_vfork_child() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  CHECK(signal(SIGTRAP, handler) == SIG_DFL);
  CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
  const pid_t child = vfork();
  if (child == 0) {
    signal(SIGTRAP, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  sigset_t now;
  CHECK(pthread_sigmask(SIG_SETMASK, &before, &now) == 0 && sigismember(&now, SIGTRAP) == 1);
  CHECK(signal(SIGTRAP, SIG_DFL) == handler);
  CHECK(owns(SIGTRAP));
}

std::atomic<int> spinning{0};

void* spin(void* /*unused*/) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  for (;;) {
    spinning.fetch_add(1);
  }
  return nullptr;
}

// libc and the clock share a signal.
void cancelling() {
  constexpr int clock_signal = 32;
  const auto came = [] { return GUEST(guest_count)(guest_clock_signal); };
  CHECK(owns(clock_signal));
  for (int i = 1; i <= 3; ++i) {
    pthread_t thread{};
    void* result = nullptr;
    spinning = 0;
    CHECK(pthread_create(&thread, nullptr, spin, nullptr) == 0);
    while (spinning == 0) {
      usleep(100);
    }
    CHECK(pthread_cancel(thread) == 0);
    CHECK(owns(clock_signal));
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(came() >= i - 1);  // the first went to libc's handler, which had just been installed
  }
  struct sigaction action {};
  CHECK(sigaction(clock_signal, &action, nullptr) == -1 && errno == EINVAL);
}

// The last of the tests with SIGTRAP: from then on its masks stay.
void a_trap_that_is_waited_for() {
  sigset_t trap;
  sigset_t pending;
  sigemptyset(&trap);
  sigaddset(&trap, SIGTRAP);
  CHECK(sigprocmask(SIG_BLOCK, &trap, nullptr) == 0 && (kernel_mask() & ours) == 0);
  const int before = GUEST(guest_count)(guest_trap);
  for (int i = 0; i < 3; ++i) {
    siginfo_t info{};
    CHECK(sigqueue(getpid(), SIGTRAP, sigval{.sival_int = 40 + i}) == 0);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGTRAP) == 1);
    CHECK((kernel_mask() & ours) == ours);
    CHECK(sigwaitinfo(&trap, &info) == SIGTRAP && info.si_code == SI_QUEUE && info.si_value.sival_int == 40 + i);
  }
  CHECK(GUEST(guest_count)(guest_trap) == before);
  sigset_t old_set;
  CHECK(sigprocmask(SIG_UNBLOCK, &trap, &old_set) == 0 && sigismember(&old_set, SIGTRAP) == 1);
  CHECK(raise(SIGTRAP) == 0 && GUEST(guest_count)(guest_trap) == before + 1);
}

void seccomp() {
  const auto count = GUEST(guest_count);
  CHECK(prctl(PR_SET_NAME, "renamed") == 0);
  char name[16] = {};
  CHECK(prctl(PR_GET_NAME, name) == 0 && strcmp(name, "renamed") == 0);
  CHECK(count(guest_seccomp) == 0);
  CHECK(prctl(PR_SET_SECCOMP, 99, 0, 0, 0) == -1 && errno == EINVAL && count(guest_seccomp) == 1);
  CHECK(syscall(SYS_getpid) == getpid() && count(guest_seccomp) == 1);
  CHECK(syscall(SYS_prctl, PR_GET_NAME, name) == 0 && count(guest_seccomp) == 1);
  CHECK(syscall(SYS_prctl, PR_SET_SECCOMP, 99, 0, 0, 0) == -1 && errno == EINVAL && count(guest_seccomp) == 2);
  CHECK(syscall(SYS_seccomp, 1, 0, nullptr) == -1 && count(guest_seccomp) == 3);
  char action[32] = {};
  CHECK(syscall(SYS_rt_sigaction, SIGTRAP, nullptr, action, 8) == 0 && count(guest_signal_taken) == 0);
  CHECK(syscall(SYS_rt_sigaction, SIGTRAP, action, nullptr, 8) == 0 && count(guest_signal_taken) == 1);
  CHECK(syscall(SYS_mmap, nullptr, 4096, 3, 0x22, -1, 0) != -1);  // all six arguments arrive
  CHECK(syscall(SYS_close, -1) == -1 && errno == EBADF);
}

}  // namespace

int main() {
  masks();
  masks_of_threads();
  masks_that_libc_keeps(false);
  masks_that_libc_keeps(true);
  masks_of_coroutines();
  trap_handlers();
  other_handlers();
  waiting();
  a_vfork_child();
  cancelling();
  a_trap_that_is_waited_for();
  seccomp();
  return 0;
}
