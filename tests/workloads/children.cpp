// SPDX-License-Identifier: Apache-2.0
// A family of processes: the program runs another (its arguments after `--`) in a child made by fork, by
// fork without exec, by vfork or by posix_spawn, or becomes it by exec, and passes its status on.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "workload.h"

extern char** environ;

namespace {

using workload::Deadline;

[[noreturn]] void become(char** command) {
  execvp(command[0], command);
  std::fprintf(stderr, "children: %s: %s\n", command[0], std::strerror(errno));
  _exit(127);
}

std::uint64_t work_in_child(double seconds) {
  const Deadline deadline(seconds);
  volatile std::uint64_t sum = 0;
  for (std::uint64_t n = 0; (n & 4095U) != 0 || !deadline.passed(); ++n) {
    sum = sum + n;
  }
  return sum;
}

pid_t make_child(const char* how, char** command) {
  if (std::strcmp(how, "vfork") == 0) {
    const pid_t child = vfork();  // NOLINT: the call under test
    if (child == 0) {
      execvp(command[0], command);
      _exit(127);
    }
    return child;
  }
  if (std::strcmp(how, "spawn") == 0) {
    pid_t child = -1;
    return posix_spawnp(&child, command[0], nullptr, nullptr, command, environ) == 0 ? child : -1;
  }
  const pid_t child = fork();
  if (child == 0) {
    if (std::strcmp(how, "fork") == 0) {
      become(command);
    }
    work_in_child(1.0);  // "plain": a child that stays this program
    _exit(0);
  }
  return child;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || (std::strcmp(argv[1], "plain") != 0 && argc < 4)) {
    std::fprintf(stderr, "children: usage: children fork|vfork|spawn|exec -- COMMAND [ARG...], or children plain\n");
    return 2;
  }
  char** command = argv + 3;
  if (std::strcmp(argv[1], "exec") == 0) {
    become(command);
  }
  const pid_t child = make_child(argv[1], command);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    std::fprintf(stderr, "children: no child: %s\n", std::strerror(errno));
    return 1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
