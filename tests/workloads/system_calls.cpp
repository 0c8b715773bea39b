// SPDX-License-Identifier: Apache-2.0
// One thread that reads from the kernel most of the time: pump() calls read(), and computes a little in between. With
// --confine it first enters a seccomp filter, as programs do that distrust their input.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "workload.h"

namespace {

volatile double value = 1;

[[gnu::noinline]] long pump(int file, std::vector<char>& buffer) {
  const long bytes = ::read(file, buffer.data(), buffer.size());
  for (int i = 0; i < 20; ++i) {
    value = value * 1.0001;
  }
  return bytes;
}

/// Opening a perf event would kill it.
void confine() {
  std::array<sock_filter, 4> filter = {{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
                                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog program{filter.size(), filter.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

}  // namespace

int main(int argc, char** argv) {
  workload::Flags flags("system_calls", "reads from the kernel most of the time");
  flags.number("--seconds", 2, 0.01, 3600, "run time").number("--confine", 0, 0, 1, "1: enter a seccomp filter first");
  flags.parse(argc, argv);
  if (flags.integer("--confine") != 0) {
    confine();
  }
  const int file = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  std::vector<char> buffer(std::size_t{1} << 16U);
  const workload::Deadline deadline(flags.real("--seconds"));
  while (!deadline.passed()) {
    if (pump(file, buffer) < 0) {
      return 1;
    }
  }
  return 0;
}
