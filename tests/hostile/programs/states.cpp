// SPDX-License-Identifier: Apache-2.0
// States of the processor and of a thread that code in signal handlers or inside libc's functions may not expect:
// alignment checks, floating-point exceptions, another thread pointer, no time stamps, no system calls, the trap flag,
// restartable sequences.
#include <asm/prctl.h>
#include <linux/prctl.h>
#include <linux/rseq.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "hostile.h"

namespace {

using namespace hostile;

constexpr std::uint64_t rounds = 250'000'000;  // of a loop of its own; some 0.1 s, and more where the line is exchanged

/// Stores to the shared line, `count` times. No call, no stack, no thread-local storage.
[[gnu::noinline]] void store(std::uint64_t count) {
  asm volatile(
      "1: mov %[count], (%[word])\n"
      "dec %[count]\n"
      "jnz 1b\n"
      : [count] "+r"(count)
      : [word] "r"(&shared_line.words[0])
      : "memory", "cc");
}

/// With the alignment-check flag set, an unaligned access faults, in any code.
int alignment_checked(int, char**) {
  constexpr std::uint64_t alignment_check = 1U << 18U;
  const Burners burners(1);
  for (int n = 0; n < 3; ++n) {
    asm volatile("sub $128, %%rsp\n pushf\n orq %0, (%%rsp)\n popf\n add $128, %%rsp" ::"i"(alignment_check)
                 : "memory", "cc");
    store(rounds);
    asm volatile("sub $128, %%rsp\n pushf\n andq %0, (%%rsp)\n popf\n add $128, %%rsp" ::"i"(~alignment_check)
                 : "memory", "cc");
  }
  say("done");
  return 0;
}

/// Each inexact result would raise a signal; rounding is upwards. Threads and blocks are made in that state.
int float_exceptions(int, char**) {
  static std::atomic<int> raised{0};
  handle(SIGFPE, [](int, siginfo_t*, void* context) {
    ++raised;
    // Masks the exceptions in the interrupted state, or else the same instruction would fault for ever.
    static_cast<ucontext_t*>(context)->uc_mcontext.fpregs->mxcsr |= 0x1f80U;
  });
  const Burners burners(1);
  std::vector<pthread_t> threads(20);
  std::fesetround(FE_UPWARD);
  feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_INEXACT | FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW);
  for (pthread_t& thread : threads) {
    const auto body = [](void*) -> void* {
      std::free(std::malloc(100'000));
      store(rounds / 20);
      return nullptr;
    };
    require(pthread_create(&thread, nullptr, body, nullptr) == 0, "pthread_create");
  }
  store(rounds);
  for (const pthread_t thread : threads) {
    pthread_join(thread, nullptr);
  }
  const int mode = fegetround();
  const int flags = fetestexcept(FE_ALL_EXCEPT);
  const int enabled = fegetexcept();
  fedisableexcept(FE_ALL_EXCEPT);
  say("raised %d, rounding upwards: %s, flags %x, enabled %x", raised.load(), yes(mode == FE_UPWARD),
      static_cast<unsigned>(flags), static_cast<unsigned>(enabled));
  return 0;
}

/// The thread pointer points to zeros, as in code that has switched to a guest's.
int other_thread_pointer(int, char**) {
  const Burners burners(1);
  char* zeros = static_cast<char*>(mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::uint64_t own = 0;
  syscall(SYS_arch_prctl, ARCH_GET_FS, &own);
  const auto set = [](std::uint64_t pointer) {
    long result = SYS_arch_prctl;
    asm volatile("syscall" : "+a"(result) : "D"(ARCH_SET_FS), "S"(pointer) : "rcx", "r11", "memory");
  };
  for (int n = 0; n < 3; ++n) {
    set(0);  // first: code that was sampled before has been decoded
    store(rounds / 2);
    set(reinterpret_cast<std::uint64_t>(zeros) + (1 << 19));
    store(rounds);
    set(own);
  }
  bool touched = false;
  for (int n = 0; n < 1 << 20; ++n) {
    touched = touched || zeros[n] != 0;
  }
  say("written to through the other pointer: %s", yes(touched));
  return 0;
}

/// Reading the time stamp faults.
int no_time_stamps(int, char**) {
  static std::atomic<int> faults{0};
  handle(SIGSEGV, [](int) {
    ++faults;
    prctl(PR_SET_TSC, PR_TSC_ENABLE);
  });
  const Burners burners(1);
  require(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0, "PR_SET_TSC");
  store(rounds * 3);
  int mode = 0;
  prctl(PR_GET_TSC, &mode);
  say("faults %d, still off: %s", faults.load(), yes(mode == PR_TSC_SIGSEGV));
  prctl(PR_SET_TSC, PR_TSC_ENABLE);
  return 0;
}

/// The page of code that the kernel maps for fast clocks is gone.
int no_vdso(int, char**) {
  std::ifstream maps("/proc/self/maps");
  int unmapped = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("[vdso]") != std::string::npos) {
      const std::uintptr_t begin = std::stoul(line, nullptr, 16);
      const std::uintptr_t end = std::stoul(line.substr(line.find('-') + 1), nullptr, 16);
      unmapped += munmap(reinterpret_cast<void*>(begin), end - begin) == 0 ? 1 : 0;
    }
  }
  store(rounds * 4);
  say("unmapped %d", unmapped);
  return 0;
}

/// Code that is made, run, and made anew at the same place, while a thread of its own exchanges lines.
int rewrites_code(int, char**) {
  auto* code = static_cast<unsigned char*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  require(code != MAP_FAILED, "mmap");
  const Burners burners(1);
  std::uint64_t sum = 0;
  for (int n = 0; n < 100; ++n) {
    // 1: mov %rsi, (%rdi) or mov %rsi, 8(%rdi); 2: dec %rsi; jnz 1b; mov $n, %eax; ret
    std::size_t at = 0;
    const auto add = [&](std::initializer_list<int> bytes) {
      for (const int byte : bytes) {
        code[at++] = static_cast<unsigned char>(byte);
      }
    };
    if (n % 2 == 0) {
      add({0x48, 0x89, 0x37, 0x48, 0xff, 0xce, 0x75, 0xf8});
    } else {
      add({0x48, 0x89, 0x77, 0x08, 0x48, 0xff, 0xce, 0x75, 0xf7});
    }
    add({0xb8, n, 0, 0, 0, 0xc3});
    sum += static_cast<std::uint64_t>(reinterpret_cast<int (*)(void*, std::uint64_t)>(code)(
        &shared_line.words[0], 16'000'000));  // half a second in all: to be watched
  }
  say("sum %llu", static_cast<unsigned long long>(sum));
  return 0;
}

/// The program steps through a piece of its own code by the trap flag and counts the steps.
int steps_itself(int, char**) {
  static std::atomic<int> steps{0};
  static std::atomic<int> others{0};
  handle(SIGTRAP, [](int, siginfo_t* info, void*) { ++(info->si_code == TRAP_TRACE ? steps : others); });
  const Burners burners(1);
  burn(0.1);
  for (int n = 0; n < 8; ++n) {
    asm volatile(
        "sub $128, %%rsp\n"
        "pushf\n orq $0x100, (%%rsp)\n popf\n"
        "mov $500, %%ecx\n"
        "1: mov %%rcx, (%[word])\n"
        "dec %%ecx\n"
        "jnz 1b\n"
        "pushf\n andq $~0x100, (%%rsp)\n popf\n"
        "add $128, %%rsp\n" ::[word] "r"(&shared_line.words[0])
        : "rcx", "memory", "cc");
    burn(0.005);
  }
  say("steps %d, others %d", steps.load(), others.load());
  return 0;
}

char may_call = SYSCALL_DISPATCH_FILTER_ALLOW;
std::atomic<int> dispatched{0};
std::atomic<int> dispatched_others{0};

/// System calls are delivered to the program itself, as in emulators of other systems (Wine). The program makes 50 in
/// that state, and so must see 50.
int user_dispatch(int, char**) {
  handle(SIGSYS, [](int, siginfo_t* info, void*) {
    may_call = SYSCALL_DISPATCH_FILTER_ALLOW;
    ++dispatched;
    dispatched_others += info->si_syscall == SYS_getppid ? 0 : 1;
  });
  burn(0.2);
  const Burners burners(1);
  require(prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &may_call) == 0, "user dispatch");
  for (int n = 0; n < 50; ++n) {
    may_call = SYSCALL_DISPATCH_FILTER_BLOCK;
    store(rounds / 15);
    long result = SYS_getppid;
    asm volatile("syscall" : "+a"(result)::"rcx", "r11", "memory");
    may_call = SYSCALL_DISPATCH_FILTER_ALLOW;
  }
  require(prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0) == 0, "user dispatch");
  say("handed over %d, of them not the program's %d", dispatched.load(), dispatched_others.load());
  return 0;
}

/// Counters of each processor, added to in restartable sequences, which any interruption restarts: nothing is lost or
/// counted twice.
struct alignas(64) Counter {
  std::int64_t value = 0;
};
Counter counters[1024];

/// Adds 1 to the counter of the processor that it runs on.
void add_one(struct rseq* area) {
  for (;;) {
    const std::uint32_t cpu = __atomic_load_n(&area->cpu_id_start, __ATOMIC_RELAXED);
    asm volatile goto(
        ".pushsection __rseq_cs, \"aw\"\n"
        ".balign 32\n"
        "3: .long 0, 0\n"
        ".quad 1f, 2f - 1f, 4f\n"
        ".popsection\n"
        "lea 3b(%%rip), %%rax\n"
        "mov %%rax, 8(%[area])\n"      // rseq_cs
        "1: cmp %[cpu], 4(%[area])\n"  // cpu_id
        "jne 4f\n"
        "incq (%[counter])\n"
        "2:\n"
        ".pushsection .text.unlikely, \"ax\"\n"
        ".long 0x53053053\n"  // the signature that libc has registered
        "4: jmp %l[restart]\n"
        ".popsection\n"
        :
        : [area] "r"(area), [cpu] "r"(cpu), [counter] "r"(&counters[cpu % 1024].value)
        : "rax", "memory", "cc"
        : restart);
    return;
  restart:
    continue;
  }
}

int restartable(int, char**) {
  constexpr int count = 80'000'000;
  require(__rseq_size > 0, "libc has registered no restartable sequences");
  std::vector<std::thread> threads;
  for (int n = 0; n < 3; ++n) {
    threads.emplace_back([] {
      auto* area = reinterpret_cast<struct rseq*>(static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset);
      for (int i = 0; i < count; ++i) {
        add_one(area);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::int64_t sum = 0;
  for (const Counter& counter : counters) {
    sum += counter.value;
  }
  say("lost or counted twice: %lld", static_cast<long long>(sum - 3LL * count));
  return 0;
}

std::atomic<int> raw_finished{0};

/// A busy thread without thread-local storage and with 64 bytes of stack, which no library knows of.
void start_raw_burner() {
  constexpr long flags =
      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS;
  static long stacks[8][8];
  static int next = 0;
  long result = SYS_clone;
  register long thread_pointer asm("r8") = 0;
  asm volatile(
      "xor %%edx, %%edx\n"
      "xor %%r10d, %%r10d\n"
      "syscall\n"
      "test %%eax, %%eax\n"
      "jnz 2f\n"
      "mov %[rounds], %%rcx\n"
      "1: mov %%rcx, (%[word])\n"
      "dec %%rcx\n"
      "jnz 1b\n"
      "lock incl (%[finished])\n"
      "mov %[exit], %%eax\n"
      "xor %%edi, %%edi\n"
      "syscall\n"
      "2:"
      : "+a"(result), "+r"(thread_pointer)
      : "D"(flags), "S"(&stacks[next++][8]), [word] "r"(&shared_line.words[1]), [finished] "r"(&raw_finished),
        [exit] "i"(SYS_exit), [rounds] "i"(rounds)
      : "rcx", "rdx", "r10", "r11", "memory", "cc");
  require(result > 0, "clone");
}

int raw_burners(int, char**) {
  burn(0.1);
  for (int n = 0; n < 3; ++n) {
    start_raw_burner();
  }
  while (raw_finished < 3) {
    burn(0.02);
  }
  say("finished %d", raw_finished.load());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"alignment_checked", alignment_checked},
                   {"float_exceptions", float_exceptions},
                   {"other_thread_pointer", other_thread_pointer},
                   {"no_time_stamps", no_time_stamps},
                   {"no_vdso", no_vdso},
                   {"rewrites_code", rewrites_code},
                   {"steps_itself", steps_itself},
                   {"user_dispatch", user_dispatch},
                   {"restartable", restartable},
                   {"raw_burners", raw_burners}},
                  argc, argv);
}
