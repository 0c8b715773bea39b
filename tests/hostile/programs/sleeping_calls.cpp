// SPDX-License-Identifier: Apache-2.0
#include "sleeping_calls.h"

#include <netinet/in.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "hostile.h"

namespace hostile {
namespace {

long voluntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

}  // namespace

int wait_all(const std::vector<Call>& calls, const std::function<void()>& before) {
  struct Result {
    long value = 0;
    int error = 0;
    double elapsed = 0;
    long sleeps = 0;
  };
  std::vector<Result> results(calls.size() * 2);
  {
    const Burners burners(2);
    std::vector<std::thread> threads;
    for (std::size_t n = 0; n < calls.size(); ++n) {
      threads.emplace_back([&calls, &results, &before, n] {
        for (int round = 0; round < 2; ++round) {
          burn(0.005);
          if (before) {
            before();
          }
          const long sleeps = voluntary_switches();
          const double begin = now();
          errno = 0;
          Result& result = results[n * 2 + round];
          result.value = calls[n].run();
          result.error = errno;
          result.elapsed = now() - begin;
          result.sleeps = voluntary_switches() - sleeps;
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  for (std::size_t n = 0; n < results.size(); ++n) {
    const Result& result = results[n];
    // A busy machine makes a call late, too. An interrupted call that waits on has slept more often.
    const bool late = result.elapsed > limit_s + 0.25 && result.sleeps > calls[n / 2].sleeps;
    const char* length = result.elapsed < limit_s - 0.01 ? "too early" : late ? "too late" : "in time";
    say("%s: %ld %s, %s", calls[n / 2].name, result.value, result.value < 0 ? strerrorname_np(result.error) : "",
        length);
  }
  return 0;
}

long of_pthread(int error) {
  errno = error;
  return error == 0 ? 0 : -1;
}

timespec deadline(clockid_t clock) {
  timespec end{};
  clock_gettime(clock, &end);
  end.tv_nsec += limit.tv_nsec;
  end.tv_sec += end.tv_nsec / 1'000'000'000;
  end.tv_nsec %= 1'000'000'000;
  return end;
}

long direct_call(long number, long a, long b, long c, long d) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = 0;
  register long r9 asm("r9") = 0;
  long result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  if (result < 0) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

void set_time_outs(int fd) {
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit_us, sizeof limit_us);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit_us, sizeof limit_us);
}

int silent_socket() {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  set_time_outs(ends[0]);
  return ends[0];
}

int listening_socket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  require(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0, "listen");
  set_time_outs(fd);
  return fd;
}

void later(std::function<void()> what) {
  std::thread([what = std::move(what)] {
    timespec left = limit;
    while (nanosleep(&left, &left) != 0) {
    }
    what();
  }).detach();
}

long take_semaphore(const timespec* time_out) {
  const int set = semget(IPC_PRIVATE, 1, 0600);
  if (time_out == nullptr) {
    later([set] { semctl(set, 0, IPC_RMID); });
  }
  sembuf take{0, -1, 0};
  const long result = semtimedop(set, &take, 1, time_out);
  const int error = errno;
  semctl(set, 0, IPC_RMID);
  errno = error;
  return result;
}

}  // namespace hostile
