// SPDX-License-Identifier: Apache-2.0
// Alternate stacks as a program sees them: the kernel's answers, and the stacks of its handlers.
#include <execinfo.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "hostile.h"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31U)
#endif

namespace {

using namespace hostile;

constexpr std::size_t page = 4096;
constexpr std::size_t roomy = 65536;
constexpr std::size_t kernels_least = 2048;
constexpr unsigned char paint = 0xa5;

std::size_t up_to_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

/// Memory for a stack, painted, between two inaccessible pages.
class Stack {
 public:
  explicit Stack(std::size_t bytes) : bytes_(bytes), mapped_(up_to_pages(bytes) + 2 * page) {
    map_ = static_cast<unsigned char*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    require(map_ != MAP_FAILED, "mmap");
    require(mprotect(map_ + page, mapped_ - 2 * page, PROT_READ | PROT_WRITE) == 0, "mprotect");
    std::memset(map_ + page, paint, mapped_ - 2 * page);
  }
  ~Stack() { munmap(map_, mapped_); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  [[nodiscard]] unsigned char* low() const { return map_ + page; }
  [[nodiscard]] stack_t as_alternate(int flags = 0) const {
    stack_t stack{};
    stack.ss_sp = low();
    stack.ss_size = bytes_;
    stack.ss_flags = flags;
    return stack;
  }
  [[nodiscard]] bool holds(const void* address) const {
    const auto* at = static_cast<const unsigned char*>(address);
    return at >= low() && at < low() + bytes_;
  }

 private:
  std::size_t bytes_;
  std::size_t mapped_;
  unsigned char* map_;
};

int use(const Stack& stack, int flags = 0) {
  const stack_t alternate = stack.as_alternate(flags);
  return sigaltstack(&alternate, nullptr);
}

int use_none() {
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  return sigaltstack(&none, nullptr);
}

/// The calling thread's own stack.
struct Bounds {
  Bounds() {
    pthread_attr_t attributes;
    require(pthread_getattr_np(pthread_self(), &attributes) == 0, "pthread_getattr_np");
    void* at = nullptr;
    pthread_attr_getstack(&attributes, &at, &bytes);
    low = static_cast<unsigned char*>(at);
    pthread_attr_destroy(&attributes);
  }
  [[nodiscard]] bool holds(const void* address) const { return address >= low && address < low + bytes; }
  unsigned char* low = nullptr;
  std::size_t bytes = 0;
};

/// Puts the answer of sigaltstack(2) into words; `stack` is the expected one.
std::string reported(const stack_t& answer, const Stack* stack) {
  const char* where = answer.ss_sp == nullptr                            ? "nothing"
                      : stack != nullptr && answer.ss_sp == stack->low() ? "mine"
                                                                         : "something else";
  char text[100];
  std::snprintf(text, sizeof text, "%s, %zu bytes, flags %x", where, answer.ss_size,
                static_cast<unsigned>(answer.ss_flags));
  return text;
}

std::string reported(const Stack* stack) {
  stack_t answer{};
  const int result = sigaltstack(nullptr, &answer);
  return result == 0 ? reported(answer, stack) : std::string("fails");
}

// ---- small alternate stacks

sigjmp_buf back;
volatile std::sig_atomic_t caught = 0;
const Stack* alternate_stack = nullptr;
volatile bool was_on_alternate = false;

/// Takes `bytes` of the stack and touches them.
[[gnu::noinline]] void occupy(std::size_t bytes) {
  auto* memory = static_cast<volatile unsigned char*>(__builtin_alloca(bytes));
  for (std::size_t at = 0; at < bytes; at += 64) {
    memory[at] = 1;
  }
}

void on_fault(int, siginfo_t*, void*) {
  char local = 0;
  was_on_alternate = alternate_stack == nullptr || alternate_stack->holds(&local);
  occupy(1024);
  caught = caught + 1;
  siglongjmp(back, 1);
}

void burning_handler(int) {
  char local = 0;
  was_on_alternate = alternate_stack->holds(&local);
  burn(0.05);
  caught = caught + 1;
}

/// A handler that burns on a stack that has room for the kernel's frame and little else.
int burns_on(int argc, char** argv) {
  const std::size_t more = argc > 0 ? std::strtoul(argv[0], nullptr, 0) : 1024;
  const Stack stack(getauxval(AT_MINSIGSTKSZ) + more);
  alternate_stack = &stack;
  use(stack);
  handle(SIGUSR1, burning_handler, SA_ONSTACK);
  const Burners burners(1);
  burn(0.01);  // libc's functions are bound: that takes more of a stack than there is
  bool good = true;
  for (int i = 0; i < 10; ++i) {
    raise(SIGUSR1);
    good = good && was_on_alternate;
  }
  say("handled %d times, on the alternate stack: %s", static_cast<int>(caught), yes(good));
  return 0;
}

/// A signal on a stack that the kernel finds too small for its frame.
int too_small(int, char**) {
  const Stack stack(kernels_least);
  say("set: %d", use(stack));
  handle(SIGUSR1, burning_handler, SA_ONSTACK);
  alternate_stack = &stack;
  exchange(0.2);
  raise(SIGUSR1);
  say("survived");
  return 0;
}

// ---- SA_ONSTACK without an alternate stack

thread_local const Bounds* own_bounds = nullptr;
thread_local volatile long distance_seen = 0;
thread_local volatile bool on_own_stack = false;

void look_around(int, siginfo_t*, void* context) {
  char local = 0;
  const auto interrupted = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP];
  distance_seen = interrupted - reinterpret_cast<std::intptr_t>(&local);
  on_own_stack = own_bounds->holds(&local);
}

void look_around_here(const char* who) {
  const Bounds bounds;
  own_bounds = &bounds;
  bool good = true;
  long farthest = 0;
  for (int i = 0; i < 200; ++i) {
    burn(0.001);
    on_own_stack = false;
    pthread_kill(pthread_self(), SIGUSR1);
    good = good && on_own_stack;
    farthest = std::max(farthest, static_cast<long>(distance_seen));
  }
  say("%s: on its own stack: %s, close by: %s", who, yes(good), yes(farthest > 0 && farthest < 16384));
  say("%s: %s", who, reported(nullptr).c_str());
}

int none_set(int, char**) {
  handle(SIGUSR1, look_around, SA_SIGINFO | SA_ONSTACK);
  const Burners burners(1);
  look_around_here("main");
  std::thread([] { look_around_here("thread"); }).join();
  return 0;
}

[[gnu::noinline]] int recurse(int depth) {
  volatile char local[1024];
  local[0] = static_cast<char>(depth);
  return depth == 0 ? local[0] : recurse(depth - 1) + local[0];
}

void on_deep(int) {
  recurse(2000);
  burn(0.01);
  caught = caught + 1;
}

/// 2 MB deep in an SA_ONSTACK handler that has the thread's own stack.
int deep(int, char**) {
  handle(SIGUSR1, on_deep, SA_ONSTACK);
  const Burners burners(1);
  for (int i = 0; i < 20; ++i) {
    raise(SIGUSR1);
  }
  std::thread([] {
    for (int i = 0; i < 20; ++i) {
      pthread_kill(pthread_self(), SIGUSR1);
    }
  }).join();
  say("handled: %d", static_cast<int>(caught));
  return 0;
}

// ---- what is reported

std::string said_in_handler;
stack_t shown_in_context;
const Stack* other_stack = nullptr;

void ask_in_handler(int, siginfo_t*, void* context) {
  said_in_handler = reported(alternate_stack);
  shown_in_context = static_cast<ucontext_t*>(context)->uc_stack;
  errno = 0;
  const stack_t other = other_stack->as_alternate();
  const int result = sigaltstack(&other, nullptr);
  said_in_handler += "; change: " + std::to_string(result) + " " + std::to_string(errno);
  burn(0.03);
}

void ask(const char* when, const Stack* stack) {
  say("%s: %s", when, reported(stack).c_str());
  raise(SIGUSR1);
  say("%s, in the handler: %s", when, said_in_handler.c_str());
  say("%s, in the context: %s", when, reported(shown_in_context, stack).c_str());
  say("%s, after it: %s", when, reported(stack).c_str());
}

void refused(const char* what, const stack_t* stack, stack_t* old) {
  errno = 0;
  const int result = sigaltstack(stack, old);
  say("%s: %d, errno %d; %s", what, result, errno, reported(alternate_stack).c_str());
}

int queries(int, char**) {
  const Stack first(roomy);
  const Stack second(2 * roomy);
  other_stack = &second;
  const Burners burners(1);
  handle(SIGUSR1, ask_in_handler, SA_SIGINFO | SA_ONSTACK);
  ask("none", nullptr);
  use_none();
  alternate_stack = &first;
  use(first);
  ask("one", &first);
  std::thread([] { say("another thread: %s", reported(nullptr).c_str()); }).join();
  stack_t old{};
  const stack_t next = second.as_alternate();
  sigaltstack(&next, &old);
  say("exchanged for: %s", reported(old, &first).c_str());
  alternate_stack = &second;
  say("now: %s", reported(&second).c_str());
  stack_t bad = first.as_alternate();
  bad.ss_size = kernels_least - 1;
  refused("small", &bad, nullptr);
  bad = first.as_alternate(64);
  refused("odd flags", &bad, nullptr);
  refused("bad address", reinterpret_cast<stack_t*>(8), nullptr);
  refused("bad address of the old", nullptr, reinterpret_cast<stack_t*>(8));
  alternate_stack = &first;
  say("with autodisarm: %d", use(first, static_cast<int>(SS_AUTODISARM)));
  ask("autodisarm", &first);
  use_none();
  say("disabled: %s", reported(&first).c_str());
  ask("disabled", nullptr);
  return 0;
}

void be_child(const Stack& stack, const Stack& other, bool set) {
  say("child: %s", reported(&stack).c_str());
  if (set) {
    use(other);
    say("child, changed: %s", reported(&other).c_str());
  }
  handle(SIGUSR2, ask_in_handler, SA_SIGINFO | SA_ONSTACK);
  raise(SIGUSR2);
  say("child, in a handler: %s", said_in_handler.c_str());
}

[[gnu::noinline]] void have_children(const Stack& stack, const Stack& other, bool set) {
  const pid_t forked = fork();
  if (forked == 0) {
    be_child(stack, other, set);
    exchange(0.1);
    _exit(3);
  }
  say("%s", end_of(forked).c_str());
  const pid_t shared = vfork();
  if (shared == 0) {
    be_child(stack, other, set);
    _exit(4);
  }
  say("%s", end_of(shared).c_str());
  say("parent: %s", reported(&stack).c_str());
}

/// Children have their parent's stack; their changes stay their own.
int children(int, char**) {
  const Stack stack(roomy);
  const Stack other(roomy);
  alternate_stack = &stack;
  other_stack = &other;
  const Burners burners(1);
  exchange(0.1);
  have_children(stack, other, false);
  have_children(stack, other, true);
  use(stack);
  have_children(stack, other, false);
  have_children(stack, other, true);
  char* arguments[] = {const_cast<char*>("/proc/self/exe"), const_cast<char*>("none_set"), nullptr};
  pid_t spawned = 0;
  posix_spawn(&spawned, "/proc/self/exe", nullptr, nullptr, arguments, environ);
  say("spawned: %s", end_of(spawned).c_str());
  return 0;
}

// ---- jumps, overflows, nesting

void jump_out(int) {
  caught = caught + 1;
  siglongjmp(back, 1);
}

[[gnu::noinline]] void jump_once() {
  if (sigsetjmp(back, 1) == 0) {
    burn(0.0005);
    raise(SIGUSR1);
  }
}

void jump_often(int times) {
  for (int i = 0; i < times; ++i) {
    jump_once();
  }
}

int jumps(int, char**) {
  const Stack stack(roomy);
  handle(SIGUSR1, jump_out, SA_ONSTACK);
  const Burners burners(1);
  jump_often(300);
  use(stack);
  jump_often(300);
  say("jumped %d times; %s", static_cast<int>(caught), reported(&stack).c_str());
  return 0;
}

[[gnu::noinline]] int endless(int depth) {
  volatile char local[512];
  local[0] = static_cast<char>(depth);
  return endless(depth + 1) + local[0];
}

[[gnu::noinline]] void overflow_once() {
  burn(0.01);
  if (sigsetjmp(back, 1) == 0) {
    static_cast<void>(endless(0));
  }
}

void overflow_often(const char* who) {
  const Stack stack(16384);
  alternate_stack = &stack;
  use(stack);
  caught = 0;
  bool good = true;
  for (int i = 0; i < 20; ++i) {
    overflow_once();
    good = good && was_on_alternate;
  }
  say("%s: %d overflows, on the alternate stack: %s", who, static_cast<int>(caught), yes(good));
  use_none();
}

/// As runtimes of other languages do.
int overflow(int, char**) {
  handle(SIGSEGV, on_fault, SA_SIGINFO | SA_ONSTACK);
  const Burners burners(1);
  overflow_often("main");
  std::thread([] { overflow_often("thread"); }).join();
  return 0;
}

/// As above, but there is no alternate stack: fatal.
int overflow_without(int, char**) {
  handle(SIGSEGV, on_fault, SA_SIGINFO | SA_ONSTACK);
  exchange(0.3);
  say("%d", endless(0));
  return 0;
}

const char* outer_local = nullptr;

void inner(int) {
  char local = 0;
  said_in_handler = "inner below the outer: ";
  said_in_handler += yes(&local < outer_local && outer_local - &local < 16384);
  burn(0.02);
}

void outer(int) {
  char local = 0;
  outer_local = &local;
  burn(0.02);
  raise(SIGUSR2);
  burn(0.02);
}

int nested(int, char**) {
  handle(SIGUSR1, outer, SA_ONSTACK);
  handle(SIGUSR2, inner, SA_ONSTACK);
  const Burners burners(1);
  raise(SIGUSR1);
  say("no alternate stack: %s", said_in_handler.c_str());
  const Stack stack(roomy);
  use(stack);
  raise(SIGUSR1);
  say("alternate stack: %s", said_in_handler.c_str());
  handle(SIGUSR2, inner, 0);
  raise(SIGUSR1);
  say("inner without SA_ONSTACK: %s", said_in_handler.c_str());
  return 0;
}

// ---- the context that a handler gets

void change_registers(int, siginfo_t* info, void* context) {
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  machine.gregs[REG_R12] = info->si_value.sival_int;
  for (auto& element : machine.fpregs->_xmm[3].element) {
    element = 0x01020304;
  }
  burn(0.001);
}

/// Registers that a handler changes in its context are changed; all others are as they were.
int context(int argc, char** argv) {
  const Stack stack(roomy);
  if (argc > 0 && std::strcmp(argv[0], "alternate") == 0) {
    use(stack);
  }
  handle(SIGUSR1, change_registers, SA_SIGINFO | SA_ONSTACK);
  const bool wide = __builtin_cpu_supports("avx") != 0;
  const Burners burners(1);
  bool good = true;
  for (int i = 0; i < 200; ++i) {
    siginfo_t info{};
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_value.sival_int = 1000 + i;
    std::uint64_t high[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    std::uint64_t low[2] = {};
    const long process = getpid();
    const long thread = gettid();
    register long r12 asm("r12") = 7;
    register long r10 asm("r10") = reinterpret_cast<long>(&info);
    long number = SYS_rt_tgsigqueueinfo;
    asm volatile(
        "test %[wide], %[wide]\n je 1f\n vmovups (%[high]), %%ymm4\n vmovups 32(%[high]), %%ymm3\n 1:\n"
        "syscall\n"
        "movups %%xmm3, (%[low])\n"
        "test %[wide], %[wide]\n je 2f\n vmovups %%ymm4, 32(%[high])\n vmovups %%ymm3, (%[high])\n vzeroupper\n 2:\n"
        : "+a"(number), "+r"(r12)
        : "D"(process), "S"(thread), "d"(SIGUSR1),
          "r"(r10), [wide] "r"(static_cast<long>(wide)), [high] "b"(high), [low] "r"(low)
        : "rcx", "r11", "xmm3", "xmm4", "memory", "cc");
    good = good && number == 0 && r12 == 1000 + i && low[0] == 0x0102030401020304 && low[1] == low[0];
    good = good && (!wide || (high[4] == 1 && high[7] == 4 && high[2] == 7 && high[3] == 8));
  }
  say("registers as they should be: %s", yes(good));
  return 0;
}

void count_frames(int) {
  void* frames[64];
  const int depth = backtrace(frames, 64);
  said_in_handler = std::to_string(depth);
}

[[gnu::noinline]] void throw_from_here() {
  throw 7;  // NOLINT: what it is does not matter
}

void throwing(int) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGSEGV);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  throw_from_here();
}

[[gnu::noinline]] void fault() {
  static volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}

/// Stacks are walked, and exceptions fly, across a handler's frame.
int unwinding(int, char**) {
  const Stack stack(roomy);
  void* frames[4];
  backtrace(frames, 4);  // loads what it needs
  const Burners burners(1);
  for (int i = 0; i < 2; ++i) {
    burn(0.1);
    handle(SIGUSR1, count_frames, SA_ONSTACK);
    raise(SIGUSR1);
    say("frames: %s", said_in_handler.c_str());
    handle(SIGSEGV, throwing, SA_ONSTACK);
    int times = 0;
    for (int k = 0; k < 20; ++k) {
      try {
        burn(0.002);
        fault();
      } catch (int) {
        ++times;
      }
    }
    say("caught: %d", times);
    use(stack);
  }
  return 0;
}

// ---- what sigaction says

void handler_a(int) { caught = caught + 1; }
void handler_b(int, siginfo_t*, void*) { caught = caught + 1; }
void handler_c(int number) {
  caught = caught + 1;
  if (caught < 5) {
    raise(number);
  }
}

void say_action(int number) {
  struct sigaction action {};
  sigaction(number, nullptr, &action);
  const char* which = action.sa_handler == handler_a     ? "a"
                      : action.sa_sigaction == handler_b ? "b"
                      : action.sa_handler == handler_c   ? "c"
                      : action.sa_handler == SIG_DFL     ? "default"
                                                         : "another";
  say("handler %s, flags %x, SIGHUP in its mask: %s", which, static_cast<unsigned>(action.sa_flags) & ~0x04000000U,
      yes(sigismember(&action.sa_mask, SIGHUP) == 1));
}

int actions(int, char**) {
  const Burners burners(1);
  handle(SIGUSR1, handler_a, SA_ONSTACK | SA_RESTART);
  say_action(SIGUSR1);
  struct sigaction action {};
  struct sigaction old {};
  action.sa_sigaction = handler_b;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  sigaddset(&action.sa_mask, SIGHUP);
  sigaction(SIGUSR1, &action, &old);
  say("before it: a: %s", yes(old.sa_handler == handler_a));
  say_action(SIGUSR1);
  raise(SIGUSR1);
  say("signal() says b: %s",
      yes(reinterpret_cast<void*>(signal(SIGUSR1, handler_a)) == reinterpret_cast<void*>(handler_b)));
  say_action(SIGUSR1);
  handle(SIGUSR1, handler_a, SA_ONSTACK);
  say("sigset() says a: %s", yes(sigset(SIGUSR1, handler_c) == handler_a));
  handle(SIGUSR1, handler_a, SA_ONSTACK);
  say("bsd_signal() says a: %s", yes(ssignal(SIGUSR1, handler_c) == handler_a));
  handle(SIGUSR1, handler_a, SA_ONSTACK);
  say("sysv_signal() says a: %s", yes(sysv_signal(SIGUSR1, handler_c) == handler_a));
  handle(SIGUSR1, handler_a, SA_ONSTACK);
  siginterrupt(SIGUSR1, 0);
  say_action(SIGUSR1);
  raise(SIGUSR1);
  exchange(0.1);
  handle(SIGUSR1, handler_c, static_cast<int>(SA_ONSTACK | SA_NODEFER));
  raise(SIGUSR1);
  say("handled: %d", static_cast<int>(caught));
  say_action(SIGUSR1);
  handle(SIGUSR1, handler_a, static_cast<int>(SA_ONSTACK | SA_RESETHAND));
  raise(SIGUSR1);
  say_action(SIGUSR1);
  raise(SIGUSR1);
  say("survived");
  return 0;
}

// ---- many signals

std::atomic<int> ticks{0};
std::atomic<int> misplaced{0};
thread_local bool (*is_right_place)(const void*) = nullptr;

void on_timer(int, siginfo_t*, void*) {
  char local = 0;
  if (is_right_place != nullptr && !is_right_place(&local)) {
    ++misplaced;
  }
  ++ticks;
  burn(0.0001);
}

void burn_under_signals(bool (*place)(const void*)) {
  is_right_place = place;
  burn(0.3);
  is_right_place = nullptr;
}

/// A thousand signals a second on two threads, on the thread's stack and on an alternate one.
int often(int, char**) {
  handle(SIGUSR1, on_timer, SA_SIGINFO | SA_ONSTACK);
  static const Bounds of_main;
  static const Stack stack(16384);
  const pthread_t self = pthread_self();
  std::atomic<bool> stop{false};
  std::thread sender([&] {
    while (!stop) {
      pthread_kill(self, SIGUSR1);
      burn(0.0005);
    }
  });
  burn_under_signals([](const void* at) { return of_main.holds(at); });
  burn(0.01);
  use(stack);
  burn_under_signals([](const void* at) { return stack.holds(at); });
  use_none();
  stop = true;
  sender.join();
  say("ticked: %s, misplaced: %d", yes(ticks > 50), misplaced.load());
  return 0;
}

/// Handlers that only the kernel knows of.
int handler_by_system_call(int, char**) {
  struct {
    void (*handler)(int, siginfo_t*, void*);
    unsigned long flags;
    void (*restorer)();
    unsigned long mask;
  } action{};
  handle(SIGUSR1, on_timer, SA_SIGINFO | SA_ONSTACK);
  const Burners burners(1);
  exchange(0.05);
  syscall(SYS_rt_sigaction, SIGUSR1, nullptr, &action, 8);
  action.handler = on_timer;
  syscall(SYS_rt_sigaction, SIGUSR1, &action, nullptr, 8);
  for (int i = 0; i < 1000; ++i) {
    raise(SIGUSR1);
  }
  struct sigaction seen {};
  sigaction(SIGUSR1, nullptr, &seen);
  say("handled: %d; found as set: %s", ticks.load(), yes(seen.sa_sigaction == on_timer));
  return 0;
}

// ---- threads with stacks of their own

std::atomic<int> wrong_stack{0};
thread_local const Stack* thread_stack = nullptr;

void check_stack(int) {
  char local = 0;
  if (thread_stack == nullptr || !thread_stack->holds(&local)) {
    ++wrong_stack;
  }
}

void with_own_stack(int kicks) {
  const Stack stack(16384);
  thread_stack = &stack;
  if (reported(nullptr) != "nothing, 0 bytes, flags 2" || use(stack) != 0) {
    ++wrong_stack;
  }
  for (int i = 0; i < kicks; ++i) {
    burn(0.001);
    pthread_kill(pthread_self(), SIGUSR1);
  }
  if (use_none() != 0 || reported(nullptr) != "nothing, 0 bytes, flags 2") {
    ++wrong_stack;
  }
}

int own_stacks(int, char**) {
  handle(SIGUSR1, check_stack, SA_ONSTACK);
  for (int round = 0; round < 4; ++round) {
    std::thread threads[4];
    for (auto& thread : threads) {
      thread = std::thread(with_own_stack, 40);
    }
    for (auto& thread : threads) {
      thread.join();
    }
  }
  for (int i = 0; i < 1000; ++i) {
    std::thread(with_own_stack, 0).join();
  }
  say("wrong: %d", wrong_stack.load());
  return 0;
}

void end_thread_here(int) { pthread_exit(nullptr); }

/// Threads end in a handler, on their alternate stack or without one.
int end_in_handler(int, char**) {
  handle(SIGUSR1, end_thread_here, SA_ONSTACK);
  const Burners burners(1);
  static Stack stack(roomy);
  for (int i = 0; i < 100; ++i) {
    auto run = [](void* with) -> void* {
      if (with != nullptr) {
        use(stack);
      }
      burn(0.002);
      pthread_kill(pthread_self(), SIGUSR1);
      return with;
    };
    pthread_t thread{};
    pthread_create(&thread, nullptr, run, i % 2 == 0 ? &stack : nullptr);
    void* result = &stack;
    pthread_join(thread, &result);
    require(result == nullptr, "pthread_exit");
  }
  say("all ended");
  return 0;
}

/// Alternate stack by system calls of the program's own, the handler by libc's function.
int by_system_call(int, char**) {
  const Stack stack(16384);
  alternate_stack = &stack;
  const stack_t wish = stack.as_alternate();
  exchange(0.1);
  syscall(SYS_sigaltstack, &wish, nullptr);
  handle(SIGUSR1, burning_handler, SA_ONSTACK);
  const Burners burners(1);
  bool good = true;
  for (int i = 0; i < 10; ++i) {
    raise(SIGUSR1);
    good = good && was_on_alternate;
  }
  stack_t answer{};
  syscall(SYS_sigaltstack, nullptr, &answer);
  say("on it: %s; %s; %s", yes(good), reported(answer, &stack).c_str(), reported(&stack).c_str());
  return 0;
}

/// The program's own breakpoints.
int own_traps(int, char**) {
  const Stack stack(roomy);
  const Bounds bounds;
  own_bounds = &bounds;
  const Burners burners(1);
  bool good = true;
  handle(SIGTRAP, look_around, SA_SIGINFO);
  for (int i = 0; i < 50; ++i) {
    burn(0.002);
    asm volatile("int3");
    good = good && on_own_stack && distance_seen < 16384;
  }
  handle(SIGTRAP, look_around, SA_SIGINFO | SA_ONSTACK);
  asm volatile("int3");
  good = good && on_own_stack;
  use(stack);
  alternate_stack = &stack;
  handle(SIGTRAP, burning_handler, SA_ONSTACK);
  for (int i = 0; i < 10; ++i) {
    asm volatile("int3");
    good = good && was_on_alternate;
  }
  say("each on the stack that it should have: %s", yes(good));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"burns_on", burns_on},
                   {"too_small", too_small},
                   {"none_set", none_set},
                   {"deep", deep},
                   {"queries", queries},
                   {"children", children},
                   {"jumps", jumps},
                   {"overflow", overflow},
                   {"overflow_without", overflow_without},
                   {"nested", nested},
                   {"context", context},
                   {"unwinding", unwinding},
                   {"actions", actions},
                   {"own_stacks", own_stacks},
                   {"end_in_handler", end_in_handler},
                   {"by_system_call", by_system_call},
                   {"own_traps", own_traps},
                   {"often", often},
                   {"handler_by_system_call", handler_by_system_call}},
                  argc, argv);
}
