// SPDX-License-Identifier: Apache-2.0
// Signals that libc keeps for itself, by system calls, and those that sockets send.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>

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

int main(int argc, char** argv) { return dispatch({{"of_libc", of_libc}, {"of_sockets", of_sockets}}, argc, argv); }
