// SPDX-License-Identifier: Apache-2.0
// Programs that restrict their system calls from some moment on, in each way, while their threads are busy: another
// call afterwards kills them.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "hostile.h"

namespace {

using namespace hostile;

/// A filter that answers forbidden calls with `action`.
class Filter {
 public:
  explicit Filter(std::uint32_t action, std::initializer_list<int> more = {}) {
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
    for (const int number : {SYS_write, SYS_exit, SYS_exit_group, SYS_futex, SYS_clock_gettime, SYS_munmap, SYS_madvise,
                             SYS_mmap, SYS_mprotect, SYS_brk, SYS_newfstatat, SYS_rt_sigprocmask}) {
      allow(number);
    }
    for (const int number : more) {
      allow(number);
    }
    add(BPF_RET | BPF_K, action);
    program_ = {static_cast<unsigned short>(code_.size()), code_.data()};
  }
  [[nodiscard]] const sock_fprog* get() const { return &program_; }

 private:
  void add(unsigned short code, std::uint32_t value) { code_.push_back({code, 0, 0, value}); }
  void allow(int number) {
    code_.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(number)});
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  std::vector<sock_filter> code_;
  sock_fprog program_{};
};

/// A system call without a function of libc: only in the program seccomp_direct, which has no other way.
#ifdef DIRECT_CALLS
[[gnu::always_inline]] inline long direct_call(long number, long a, long b, long c) {
  register long r10 asm("r10") = 0;
  register long r8 asm("r8") = 0;
  long result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
  return result;
}
#else
[[noreturn]] long direct_call(long, long, long, long) { std::exit(99); }
#endif

void no_new_privileges() { require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS"); }

/// Enters in the named way. Running threads stay outside, except with "tsync".
void enter(const std::string& way, const sock_fprog* filter) {
  no_new_privileges();
  const long address = reinterpret_cast<long>(filter);
  long result = -1;
  if (way == "prctl") {
    result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter);
  } else if (way == "syscall") {
    result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter);
  } else if (way == "syscall_prctl") {
    result = syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter, 0, 0);
  } else if (way == "direct") {
    result = direct_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, address);
  } else if (way == "direct_prctl") {
    result = direct_call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, address);
  } else if (way == "tsync") {
    result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, filter);
  } else if (way == "direct_tsync") {
    result = direct_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, address);
  }
  require(result == 0, way.c_str());
}

/// One thread; the filter kills.
int alone(int, char** argv) {
  exchange(0.2);
  const Filter filter(SECCOMP_RET_KILL_PROCESS);
  enter(argv[0], filter.get());
  burn(0.2);
  say("still alive");
  return 0;
}

/// All threads enter while they are busy.
int together(int, char** argv) {
  const Burners burners(3);
  exchange(0.08);
  const Filter filter(SECCOMP_RET_KILL_PROCESS);
  enter(argv[0], filter.get());
  burn(0.1);
  say("still alive");
  return 0;
}

/// Threads that have been sleeping wake inside the sandbox.
int sleepers(int, char** argv) {
  std::atomic<int> word{0};
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  for (int n = 0; n < 8; ++n) {
    threads.emplace_back([&] {
      burn(0.01);
      while (word == 0) {
        syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 0, nullptr, nullptr, 0);
      }
      burn(0.02);
      ++woken;
    });
  }
  exchange(0.35);
  const Filter filter(SECCOMP_RET_KILL_PROCESS);
  enter(argv[0], filter.get());
  word = 1;
  syscall(SYS_futex, &word, 1 /* FUTEX_WAKE */, 100, nullptr, nullptr, 0);
  burn(0.2);
  while (woken < 8) {
  }
  say("woken %d", woken.load());
  _exit(0);
}

/// read, write, exit and sigreturn are all that there is.
int strict(int, char**) {
  exchange(0.3);
  require(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0, "strict");
  for (std::uint32_t n = 0; n < 100'000'000; ++n) {
    __atomic_store_n(&shared_line.words[0], n, __ATOMIC_RELAXED);
  }
  put("still alive\n");
  syscall(SYS_exit, 4);
  return 1;
}

int strict_by_direct_call(int, char**) {
  exchange(0.3);
  require(direct_call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0) == 0, "strict");
  for (std::uint32_t n = 0; n < 100'000'000; ++n) {
    __atomic_store_n(&shared_line.words[0], n, __ATOMIC_RELAXED);
  }
  put("still alive\n");
  syscall(SYS_exit, 4);
  return 1;
}

/// A refused call raises a signal for a handler, and only the program's own calls are refused.
int told(int, char**) {
  static std::atomic<int> refused{0};
  static std::atomic<int> other{0};
  handle(SIGSYS, [](int, siginfo_t* info, void*) {
    ++refused;
    other += info->si_syscall == SYS_getppid ? 0 : 1;
  });
  const Burners burners(1);
  exchange(0.2);
  const Filter filter(SECCOMP_RET_TRAP, {SYS_rt_sigreturn});
  enter("tsync", filter.get());
  for (int n = 0; n < 50; ++n) {
    syscall(SYS_getppid);
    burn(0.004);
  }
  say("refused %d, of them not the program's %d", refused.load(), other.load());
  return 0;
}

/// A refused call fails.
int refused(int, char** argv) {
  const Burners burners(2);
  exchange(0.1);
  const Filter filter(SECCOMP_RET_ERRNO | ENOSYS);
  enter(argv[0], filter.get());
  errno = 0;
  const long answer = syscall(SYS_getppid);
  say("getppid %ld, %s", answer, std::strerror(errno));
  burn(0.1);
  say("still alive");
  return 0;
}

/// A worker process, started as browsers do: fork, enter, work.
int workers(int, char** argv) {
  const Burners burners(1);
  exchange(0.15);
  for (int n = 0; n < 3; ++n) {
    const pid_t child = fork();
    if (child == 0) {
      burn(0.03);
      const Filter filter(SECCOMP_RET_KILL_PROCESS);
      enter(argv[0], filter.get());
      burn(0.05);
      _exit(20 + n);
    }
    say("worker: %s", end_of(child).c_str());
  }
  return 0;
}

/// Runs a command as some containers do: calls that profilers need are forbidden before it begins.
int contain(int, char** argv) {
  std::vector<sock_filter> code = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int number : {SYS_perf_event_open, SYS_process_vm_readv, SYS_process_vm_writev, SYS_ptrace, SYS_bpf,
                           SYS_userfaultfd, SYS_io_uring_setup, SYS_kcmp, SYS_pidfd_getfd, SYS_rseq, SYS_clone3}) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (number == SYS_clone3 ? ENOSYS : EPERM)));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(code.size()), code.data()};
  enter("syscall", &filter);
  execvp(argv[0], argv);
  return 127;
}

/// A thread that enters alone; the others are free.
int one_thread(int, char** argv) {
  const Burners burners(1);
  std::thread([&] {
    burn(0.15);
    const Filter filter(SECCOMP_RET_KILL_THREAD, {SYS_gettid});
    enter(argv[0], filter.get());
    burn(0.15);
    say("the sandboxed thread ends");
  }).join();
  burn(0.1);
  say("main ends");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"alone", alone},
                   {"together", together},
                   {"sleepers", sleepers},
                   {"strict", strict},
                   {"strict_by_direct_call", strict_by_direct_call},
                   {"told", told},
                   {"refused", refused},
                   {"workers", workers},
                   {"contain", contain},
                   {"one_thread", one_thread}},
                  argc, argv);
}
