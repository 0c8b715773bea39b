// SPDX-License-Identifier: Apache-2.0
// Processes that checks of the module start: with another user's rights, and with their memory open to be followed.
#pragma once

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kmod_context.h"

namespace kmod_test {

/// A descriptor of the process's memory, or -1 with errno.
inline int open_memory(pid_t pid, int flags = O_RDONLY) {
  return open(("/proc/" + std::to_string(pid) + "/mem").c_str(), flags | O_CLOEXEC);
}

/// errno of FOLLOW, or 0.
inline int follow(const Context& context, pid_t tid, int memory) {
  const crosstalk_ibs_follow wanted{sizeof(wanted), tid, memory, 0, 0};
  return context.call(CROSSTALK_IBS_IOC_FOLLOW, &wanted);
}

/// 1000 + the signal, where one ended it.
inline int exit_status_of(pid_t child) {
  int status = 0;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// Allows user nobody (see as_nobody) to open the device, and sets perf_event_paranoid to the usual 2.
inline void open_to_nobody() {
  FILE* file = std::fopen("/proc/sys/kernel/perf_event_paranoid", "w");
  CHECK(file != nullptr && std::fprintf(file, "2") > 0 && std::fclose(file) == 0);
  CHECK_EQUAL(error_of(chmod(kDevice, 0666)), 0);
}

/// Runs `work` in a child as nobody, and checks that it ends with 0 failures.
inline void as_nobody(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    failures = 0;
    CHECK_EQUAL(setgid(nobody) + setuid(nobody), 0);
    prctl(PR_SET_DUMPABLE, 1);
    work();
    _exit(failures == 0 ? 0 : 1);
  }
  CHECK_EQUAL(exit_status_of(child), 0);
}

}  // namespace kmod_test
