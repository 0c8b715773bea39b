// SPDX-License-Identifier: Apache-2.0
// Handlers and masks of signals, set by the program's own instructions: a runtime without libc.
#include <sys/syscall.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "hostile.h"

namespace {

using namespace hostile;

/// A system call that goes through no function of libc.
long direct_call(long number, long a, long b, long c, long d) {
  register long r10 asm("r10") = d;
  long result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return result;
}

/// A language's runtime without libc: it uses all signals except libc's own, by its own instructions, on its own
/// alternate stacks. None arrives.
int own_runtime(int, char**) {
  static std::atomic<int> came{0};
  handle(
      SIGUSR1, [](int) { ++came; }, SA_ONSTACK);
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    std::uint64_t mask;
  } action{};
  direct_call(SYS_rt_sigaction, SIGUSR1, 0, reinterpret_cast<long>(&action), 8);  // with libc's restorer
  exchange(0.15);
  const auto take_stack = [] {
    constexpr std::size_t bytes = 32768;
    const stack_t stack{std::malloc(bytes), 0, bytes};
    direct_call(SYS_sigaltstack, reinterpret_cast<long>(&stack), 0, 0, 0);
  };
  take_stack();
  for (int number = 1; number <= 64; ++number) {
    if (number != SIGKILL && number != SIGSTOP && (number < 32 || number > 34)) {
      direct_call(SYS_rt_sigaction, number, reinterpret_cast<long>(&action), 0, 8);
    }
  }
  std::thread other([&] {
    take_stack();
    burn(0.2);
  });
  burn(0.2);
  other.join();
  say("came %d", came.load());
  return 0;
}

/// All signals are blocked by an instruction of the program's own, as runtimes do around a fork, for longer than usual.
int blocked_by_direct_call(int, char**) {
  exchange(0.15);
  const std::uint64_t all = ~std::uint64_t{0};
  std::uint64_t before = 0;
  direct_call(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&all), reinterpret_cast<long>(&before), 8);
  {
    const Burners burners(1);
    burn(0.15);
    sigset_t pending;
    sigpending(&pending);
    int count = 0;
    for (int number = 1; number <= SIGRTMAX; ++number) {
      count += sigismember(&pending, number) == 1 ? 1 : 0;
    }
    std::uint64_t now = 0;
    direct_call(SYS_rt_sigprocmask, SIG_BLOCK, 0, reinterpret_cast<long>(&now), 8);
    say("before %llx, now %llx, pending %d", static_cast<unsigned long long>(before),
        static_cast<unsigned long long>(now), count);
  }
  direct_call(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&before), 0, 8);
  exchange(0.1);
  say("alive");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"own_runtime", own_runtime}, {"blocked_by_direct_call", blocked_by_direct_call}}, argc, argv);
}
