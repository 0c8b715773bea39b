// SPDX-License-Identifier: Apache-2.0
// Signals of programs that go round libc: those that libc keeps for itself, handlers and masks by system calls, and
// what sockets send.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "hostile.h"

namespace {

using namespace hostile;

/// Signals that libc keeps for itself, by system calls: a runtime without libc may use them.
int of_libc(int, char**) {
  static std::atomic<int> came{0};
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    std::uint64_t mask;
  } action{};
  handle(SIGUSR1, [](int) { ++came; });
  syscall(SYS_rt_sigaction, SIGUSR1, nullptr, &action, 8);  // with libc's restorer
  for (const int number : {32, 33, 34, 63, 64}) {
    syscall(SYS_rt_sigaction, number, &action, nullptr, 8);
    exchange(0.05);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
    burn(0.02);
    say("%d: came %d", number, came.exchange(0));
  }
  return 0;
}

/// A system call that goes through no function of libc.
long direct_call(long number, long a, long b, long c, long d) {
  register long r10 asm("r10") = d;
  long result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return result;
}

/// A language's runtime that does without libc: it has all signals for itself but libc's own, by instructions of its
/// own, on alternate stacks of its own. None comes.
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
  syscall(SYS_rt_sigaction, SIGUSR1, nullptr, &action, 8);  // with libc's restorer
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

/// Signals that sockets send: SIGURG for urgent data, another for what arrives.
int of_sockets(int, char**) {
  static std::atomic<int> urgent{0};
  static std::atomic<int> arrived{0};
  handle(SIGURG, [](int) { ++urgent; });
  handle(SIGRTMAX, [](int, siginfo_t* info, void*) { arrived += info->si_code == POLL_IN ? 1 : 0; });
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  require(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(listener, 1) == 0 &&
              getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0,
          "listen");
  const int sender = socket(AF_INET, SOCK_STREAM, 0);
  require(connect(sender, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "connect");
  const int receiver = accept(listener, nullptr, nullptr);
  fcntl(receiver, F_SETOWN, getpid());
  exchange(0.15);
  for (int n = 1; n <= 20; ++n) {
    require(send(sender, "!", 1, MSG_OOB) == 1, "send");
    for (int tries = 0; urgent < n && tries < 200; ++tries) {
      burn(0.002);
    }
    char byte = 0;
    recv(receiver, &byte, 1, MSG_OOB);
  }
  fcntl(receiver, F_SETSIG, SIGRTMAX);
  fcntl(receiver, F_SETFL, fcntl(receiver, F_GETFL) | O_ASYNC);
  for (int n = 1; n <= 20; ++n) {
    require(send(sender, "?", 1, 0) == 1, "send");
    for (int tries = 0; arrived < n && tries < 200; ++tries) {
      burn(0.002);
    }
    char byte = 0;
    require(recv(receiver, &byte, 1, 0) == 1, "recv");
  }
  say("urgent %d, arrived: %s", urgent.load(), yes(arrived >= 20));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"of_libc", of_libc},
                   {"own_runtime", own_runtime},
                   {"blocked_by_direct_call", blocked_by_direct_call},
                   {"of_sockets", of_sockets}},
                  argc, argv);
}
