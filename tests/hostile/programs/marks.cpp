// SPDX-License-Identifier: Apache-2.0
// Programs that mark regions (include/crosstalk/region.h) in unlikely places.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>
#include <vector>

#include "hostile.h"
#include "include/crosstalk/region.h"

namespace {

using namespace hostile;

std::atomic<int> alarms{0};

/// In a handler that interrupts marks, errno stays, and so does the interrupted state.
int in_handlers(int, char**) {
  struct sigaction action {};
  action.sa_handler = [](int) {
    const int before = errno;
    const crosstalk::Region region("alarm");
    const crosstalk::Region within("within");
    errno = before;
    ++alarms;
  };
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &often, nullptr);
  errno = 77;
  bool kept = true;
  long marks = 0;
  for (const double end = now() + 0.4; now() < end;) {
    for (int i = 0; i < 1000; ++i, ++marks) {
      const crosstalk::Region region(i % 2 == 0 ? "even" : "odd");
      kept = kept && errno == 77;
    }
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  say("errno kept %s, alarms %s, marks %s", yes(kept), yes(alarms > 20), yes(marks > 100000));
  return 0;
}

jmp_buf back;

/// Many threads mark, jump out of regions, and end in the middle of them.
int in_threads(int, char**) {
  std::vector<std::thread> crew;
  for (int n = 0; n < 60; ++n) {
    crew.emplace_back([n] {
      crosstalk_begin("never ended");
      burn(0.01);
      for (int i = 0; i < 2000; ++i) {
        const crosstalk::Region region("thread");
      }
      if (n % 3 == 0) {
        crosstalk_end();
        crosstalk_end();
        crosstalk_end();
      }
    });
  }
  for (std::thread& thread : crew) {
    thread.join();
  }
  for (volatile int i = 0; i < 1000; i = i + 1) {
    if (setjmp(back) == 0) {
      crosstalk_begin("left");
      longjmp(back, 1);
    }
  }
  say("done");
  return 0;
}

/// Threads that have marked nothing before enter a filter that kills, and mark then.
int in_a_sandbox(int, char**) {
  const Burners burners(2);
  burn(0.05);
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof code / sizeof code[0], code};
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  require(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0, "seccomp");
  for (int i = 0; i < 100000; ++i) {
    const crosstalk::Region region("confined");
  }
  put("confined\n");
  _exit(0);
}

/// In children of vfork, and of fork by system call.
int in_children(int, char**) {
  const crosstalk::Region around("around");
  burn(0.02);
  const pid_t borrowed = vfork();
  if (borrowed == 0) {
    crosstalk_begin("borrowed");
    crosstalk_end();
    _exit(7);
  }
  int status = 0;
  waitpid(borrowed, &status, 0);
  say("vfork %d", WEXITSTATUS(status));
  const pid_t raw = static_cast<pid_t>(syscall(SYS_fork));
  if (raw == 0) {
    for (int i = 0; i < 1000; ++i) {
      const crosstalk::Region region("raw");
    }
    crosstalk_end();
    _exit(8);
  }
  waitpid(raw, &status, 0);
  say("fork %d", WEXITSTATUS(status));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"in_handlers", in_handlers},
                   {"in_threads", in_threads},
                   {"in_a_sandbox", in_a_sandbox},
                   {"in_children", in_children}},
                  argc, argv);
}
