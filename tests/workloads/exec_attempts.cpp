// SPDX-License-Identifier: Apache-2.0
// exec by a process whose other threads go on computing.
//   exec_attempts failing SECONDS          main and a second thread try every way to execute what cannot be executed
//   exec_attempts thread -- COMMAND...     a thread that is not the first one becomes COMMAND
// In the first case a line of JSON says what came of it.
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "workload.h"

extern char** environ;

namespace {

using workload::Deadline;

constexpr int burners = 2;

void burn(double seconds) {
  const Deadline deadline(seconds);
  volatile std::uint64_t sum = 0;
  for (std::uint64_t n = 0; (n & 4095U) != 0 || !deadline.passed(); ++n) {
    sum = sum + n;
  }
}

/// True when all ways fail as they should.
bool all_fail() {
  char name[] = "no-such-program-anywhere";
  char* arguments[] = {name, nullptr};
  pid_t child = 0;
  return execve("/nonexistent", arguments, environ) == -1 && errno == ENOENT &&  //
         execve("/etc/passwd", arguments, environ) == -1 && errno == EACCES &&   //
         execve("/", arguments, environ) == -1 && errno == EACCES &&             //
         execvp(name, arguments) == -1 && errno == ENOENT &&                     //
         execl("/dev/null", name, nullptr) == -1 && errno == EACCES &&           //
         posix_spawnp(&child, name, nullptr, nullptr, arguments, environ) == ENOENT;
}

int attempts_of(double seconds) {
  const Deadline deadline(seconds);
  int attempts = 0;
  for (; !deadline.passed(); ++attempts) {
    if (!all_fail()) {
      std::fprintf(stderr, "exec_attempts: an exec did not fail as it should: %s\n", std::strerror(errno));
      std::exit(1);
    }
    usleep(20'000);
  }
  return attempts;
}

int fail_for(double seconds) {
  std::vector<std::thread> crew;
  for (int i = 0; i < burners; ++i) {
    crew.emplace_back(burn, seconds);
  }
  int of_thread = 0;
  crew.emplace_back([&of_thread, seconds] { of_thread = attempts_of(seconds); });
  const int of_main = attempts_of(seconds);
  for (std::thread& one : crew) {
    one.join();
  }
  std::printf("{\"workload\":\"exec_attempts\",\"threads\":%d,\"attempts\":%d}\n", burners + 2, of_main + of_thread);
  return 0;
}

[[noreturn]] void become(char** command) {
  execvp(command[0], command);
  std::fprintf(stderr, "exec_attempts: %s: %s\n", command[0], std::strerror(errno));
  _exit(127);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "failing") == 0) {
    return fail_for(std::atof(argv[2]));
  }
  if (argc < 4 || std::strcmp(argv[1], "thread") != 0) {
    std::fprintf(stderr, "exec_attempts: usage: exec_attempts failing SECONDS | thread -- COMMAND [ARG...]\n");
    return 2;
  }
  constexpr double for_ever = 1000;
  std::thread burner(burn, for_ever);
  std::thread executor([argv] {
    usleep(300'000);
    become(argv + 3);
  });
  executor.join();
  return 1;
}
