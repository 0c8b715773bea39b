// SPDX-License-Identifier: Apache-2.0
// Stacks without room for a foreign signal frame (AVX-512 alone takes 2.7 KB of one): alternate stacks, coroutines,
// threads, and code near the end of its stack.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "hostile.h"

namespace {

using namespace hostile;

constexpr std::size_t page = 4096;

/// Memory whose neighbours on both sides are no memory.
char* between_guards(std::size_t bytes) {
  const std::size_t whole = (bytes + page - 1) / page * page;
  char* memory =
      static_cast<char*>(mmap(nullptr, whole + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  require(memory != MAP_FAILED, "mmap");
  mprotect(memory, page, PROT_NONE);
  mprotect(memory + page + whole, page, PROT_NONE);
  return memory + page + whole - bytes;
}

char* set_alternate(std::size_t bytes) {
  stack_t stack{};
  stack.ss_sp = between_guards(bytes);
  stack.ss_size = bytes;
  require(sigaltstack(&stack, nullptr) == 0, "sigaltstack");
  return static_cast<char*>(stack.ss_sp);
}

/// An unused alternate stack for each of two threads, as a language's runtime sets it up in case.
int unused_alternate(int, char** argv) {
  const std::size_t bytes = std::stoul(argv[0]);
  std::vector<std::thread> threads;
  for (int n = 0; n < 2; ++n) {
    threads.emplace_back([bytes] {
      const char* stack = set_alternate(bytes);
      burn(0.3);
      stack_t seen{};
      sigaltstack(nullptr, &seen);
      if (seen.ss_sp != stack || seen.ss_size != bytes || seen.ss_flags != 0) {
        say("another alternate stack: %zu bytes, flags %d", seen.ss_size, seen.ss_flags);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  say("done");
  return 0;
}

volatile char* alternate = nullptr;
std::size_t alternate_bytes = 0;
std::atomic<int> on_alternate{0};
std::atomic<int> elsewhere{0};

void note_where() {
  volatile char here = 0;
  const bool there = &here >= alternate && &here < alternate + alternate_bytes;
  ++(there ? on_alternate : elsewhere);
  stack_t seen{};
  sigaltstack(nullptr, &seen);
  elsewhere += (seen.ss_flags & SS_ONSTACK) != 0 || !there ? 0 : 1;
}

/// Faults that are handled on an alternate stack of so many bytes while another thread exchanges the line. The handler
/// itself burns, so that it is sampled there, too.
int faults_on_alternate(int, char** argv) {
  alternate_bytes = std::stoul(argv[0]);
  alternate = set_alternate(alternate_bytes);
  static char* hole = between_guards(page);
  handle(
      SIGSEGV,
      [](int, siginfo_t* info, void*) {
        note_where();
        burn(0.004);
        mprotect(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(info->si_addr) & ~(page - 1)), page,
                 PROT_READ | PROT_WRITE);
      },
      SA_ONSTACK);
  const Burners burners(1);
  for (int n = 0; n < 60; ++n) {
    mprotect(hole, page, PROT_NONE);
    *static_cast<volatile char*>(hole) = 1;
    burn(0.003);
  }
  say("on the alternate stack %d, elsewhere %d", on_alternate.load(), elsewhere.load());
  return 0;
}

/// A handler with SA_ONSTACK in a thread that has no alternate stack runs on the thread's own.
int no_alternate(int, char**) {
  static std::atomic<int> off{0};
  static std::atomic<char*> own{nullptr};
  handle(
      SIGUSR1,
      [](int) {
        char here = 0;
        off += own - &here > 0 && own - &here < 64 * 1024 ? 0 : 1;
        stack_t seen{};
        sigaltstack(nullptr, &seen);
        off += (seen.ss_flags & SS_ONSTACK) == 0 ? 0 : 1;
        off += (seen.ss_flags & SS_DISABLE) != 0 ? 0 : 1;
      },
      SA_ONSTACK);
  const Burners burners(1);
  std::thread([] {
    char here = 0;
    own = &here;
    for (int n = 0; n < 100; ++n) {
      burn(0.003);
      pthread_kill(pthread_self(), SIGUSR1);
    }
  }).join();
  say("elsewhere %d", off.load());
  return 0;
}

/// sigaltstack() returns the stack that was set: none, one, disabled, in a new thread, and while running on it.
int alternate_as_read(int, char**) {
  const auto tell = [](const char* when) {
    stack_t seen{};
    const int result = sigaltstack(nullptr, &seen);
    say("%s: %d, flags %d, size %zu, address %s", when, result, seen.ss_flags, seen.ss_size,
        yes(seen.ss_sp != nullptr));
  };
  exchange(0.2);
  tell("at first");
  set_alternate(16384);
  burn(0.05);
  tell("set");
  std::thread([&] {
    burn(0.02);
    tell("in a thread");
    set_alternate(8192);
    burn(0.02);
    tell("set in a thread");
  }).join();
  handle(
      SIGUSR1,
      [](int) {
        stack_t other{};
        other.ss_flags = SS_DISABLE;
        say("changed while in use: %s", sigaltstack(&other, nullptr) < 0 ? std::strerror(errno) : "yes");
      },
      SA_ONSTACK);
  raise(SIGUSR1);
  stack_t off{};
  off.ss_flags = SS_DISABLE;
  stack_t before{};
  sigaltstack(&off, &before);
  say("before: flags %d, size %zu", before.ss_flags, before.ss_size);
  burn(0.05);
  tell("disabled");
  stack_t small{};
  small.ss_sp = between_guards(page);
  small.ss_size = 1024;
  say("1 KiB: %s", sigaltstack(&small, nullptr) < 0 ? std::strerror(errno) : "taken");
  return 0;
}

/// Coroutines on stacks of so many bytes, which hand over to each other and burn in between.
struct Coroutine {
  ucontext_t context{};
  std::uint64_t turns = 0;
};
ucontext_t scheduler;
Coroutine* running = nullptr;

void coroutine_body() {
  for (;;) {
    for (std::uint32_t n = 0; n < 20'000; ++n) {
      __atomic_store_n(&shared_line.words[0], n, __ATOMIC_RELAXED);
    }
    ++running->turns;
    swapcontext(&running->context, &scheduler);
  }
}

int coroutines(int, char** argv) {
  const std::size_t bytes = std::stoul(argv[0]);
  const Burners burners(1);
  std::vector<Coroutine> all(50);
  for (Coroutine& one : all) {
    getcontext(&one.context);
    one.context.uc_stack.ss_sp = between_guards(bytes);
    one.context.uc_stack.ss_size = bytes;
    one.context.uc_link = nullptr;
    makecontext(&one.context, coroutine_body, 0);
  }
  const double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + 0.4;
  std::uint64_t rounds = 0;
  for (; seconds_of(CLOCK_THREAD_CPUTIME_ID) < end; ++rounds) {
    for (Coroutine& one : all) {
      running = &one;
      swapcontext(&scheduler, &one.context);
    }
  }
  std::uint64_t wrong = 0;
  for (const Coroutine& one : all) {
    wrong += one.turns == rounds ? 0 : 1;
  }
  say("coroutines that missed a turn: %llu", static_cast<unsigned long long>(wrong));
  return 0;
}

/// A thread with the smallest stack that libc gives.
int smallest_stack(int, char**) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  require(pthread_attr_setstacksize(&attributes, 16384) == 0, "pthread_attr_setstacksize");
  const auto body = [](void*) -> void* {
    volatile char used[6000];
    std::memset(const_cast<char*>(used), 1, sizeof used);
    burn(0.3);
    return nullptr;
  };
  pthread_t threads[2];
  for (pthread_t& thread : threads) {
    require(pthread_create(&thread, &attributes, body, nullptr) == 0, "pthread_create");
  }
  for (const pthread_t thread : threads) {
    pthread_join(thread, nullptr);
  }
  say("done");
  return 0;
}

/// Stores to the shared line `rounds` times with the stack pointer at `top`, and with `depth` bytes below it in use: by
/// the ABI the 128 bytes there are a leaf function's own, and with no handler installed all of them are.
std::uint64_t work_at(char* top, std::uint64_t rounds, std::size_t depth) {
  auto* kept = reinterpret_cast<std::uint64_t*>(top - depth);
  std::uint64_t result = 0x0123456789abcdefULL;
  asm volatile(
      "mov %%rsp, %%r12\n"
      "mov %[top], %%rsp\n"
      "mov %[result], (%[kept])\n"
      "1: mov %[rounds], (%[word])\n"
      "dec %[rounds]\n"
      "jnz 1b\n"
      "mov (%[kept]), %[result]\n"
      "mov %%r12, %%rsp\n"
      : [rounds] "+r"(rounds), [result] "+r"(result)
      : [top] "r"(top), [kept] "r"(kept), [word] "r"(&shared_line.words[0])
      : "r12", "memory", "cc");
  return result;
}

/// Burns where `room` bytes of the stack are left, as deep recursions do.
int near_the_end(int, char** argv) {
  const std::size_t room = std::stoul(argv[0]);
  const Burners burners(1);
  char* low = between_guards(16384);
  std::uint64_t kept = 0;
  for (int n = 0; n < 60; ++n) {
    kept |= work_at(low + room, 8'000'000, 64) ^ 0x0123456789abcdefULL;
  }
  say("red zone kept: %s", yes(kept == 0));
  return 0;
}

/// A program without handlers may store anything below its stack pointer: no signal will ever be delivered there.
int below_the_red_zone(int, char**) {
  const Burners burners(1);
  char* low = between_guards(16384);
  std::uint64_t kept = 0;
  for (int n = 0; n < 60; ++n) {
    kept |= work_at(low + 16000, 8'000'000, 600) ^ 0x0123456789abcdefULL;
  }
  say("kept: %s", yes(kept == 0));
  return 0;
}

/// The stack pointer as one more register, as hand-written code without handlers has it.
int stack_pointer_as_a_register(int, char**) {
  const Burners burners(1);
  std::uint64_t sum = 0;
  for (int n = 0; n < 60; ++n) {
    std::uint64_t rounds = 8'000'000;
    asm volatile(
        "mov %%rsp, %%r12\n"
        "xor %%esp, %%esp\n"
        "1: mov %[rounds], (%[word])\n"
        "add $2, %%rsp\n"
        "dec %[rounds]\n"
        "jnz 1b\n"
        "add %%rsp, %[sum]\n"
        "mov %%r12, %%rsp\n"
        : [rounds] "+r"(rounds), [sum] "+r"(sum)
        : [word] "r"(&shared_line.words[0])
        : "r12", "memory", "cc");
  }
  say("sum %llu", static_cast<unsigned long long>(sum));
  return 0;
}

/// Recurses until the stack is used up; the compiler cannot see that `for_ever` is true.
[[gnu::noinline]] std::uint64_t recurse(std::uint64_t depth, const volatile bool& for_ever) {
  volatile char frame[200];
  frame[0] = static_cast<char>(depth);
  if ((depth & 63U) == 0) {
    for (std::uint32_t n = 0; n < 150'000; ++n) {
      __atomic_store_n(&shared_line.words[0], n, __ATOMIC_RELAXED);
    }
  }
  return for_ever ? recurse(depth + 1, for_ever) + static_cast<std::uint64_t>(frame[0]) : depth;
}

/// A stack overflow that is caught on the alternate stack, as interpreters do, several times.
int overflow_caught(int, char**) {
  static sigjmp_buf way_out;
  static std::atomic<int> caught{0};
  set_alternate(16384);
  handle(
      SIGSEGV,
      [](int) {
        ++caught;
        siglongjmp(way_out, 1);
      },
      SA_ONSTACK);
  rlimit limit{};
  getrlimit(RLIMIT_STACK, &limit);
  limit.rlim_cur = 2U << 20U;
  setrlimit(RLIMIT_STACK, &limit);
  const Burners burners(1);
  static volatile bool for_ever = true;
  static volatile int n = 0;
  while (n < 10) {
    n = n + 1;
    if (sigsetjmp(way_out, 1) == 0) {
      recurse(1, for_ever);
    }
  }
  say("caught %d", caught.load());
  return 0;
}

/// A handler's own frames, left by a jump, on the alternate stack: it has to be free again afterwards.
int jump_off_alternate(int, char**) {
  static sigjmp_buf way_out;
  alternate_bytes = 12288;
  alternate = set_alternate(alternate_bytes);
  handle(
      SIGUSR1,
      [](int) {
        note_where();
        burn(0.002);
        siglongjmp(way_out, 1);
      },
      SA_ONSTACK);
  const Burners burners(1);
  static volatile int n = 0;
  while (n < 150) {
    n = n + 1;
    if (sigsetjmp(way_out, 1) == 0) {
      raise(SIGUSR1);
    }
  }
  stack_t seen{};
  sigaltstack(nullptr, &seen);
  say("on the alternate stack %d, elsewhere %d, flags afterwards %d", on_alternate.load(), elsewhere.load(),
      seen.ss_flags);
  return 0;
}

/// An alternate stack that disarms itself while it is used (SS_AUTODISARM), so that a handler may switch stacks.
int disarming(int, char**) {
  stack_t stack{};
  stack.ss_sp = between_guards(16384);
  stack.ss_size = 16384;
  stack.ss_flags = static_cast<int>(1U << 31U);  // SS_AUTODISARM, which libc's headers lack
  require(sigaltstack(&stack, nullptr) == 0, "sigaltstack");
  static std::atomic<int> armed_inside{0};
  handle(
      SIGUSR1,
      [](int) {
        stack_t seen{};
        sigaltstack(nullptr, &seen);
        armed_inside += (seen.ss_flags & SS_DISABLE) != 0 ? 0 : 1;
        burn(0.004);
      },
      SA_ONSTACK);
  const Burners burners(1);
  for (int n = 0; n < 60; ++n) {
    burn(0.002);
    raise(SIGUSR1);
  }
  stack_t seen{};
  sigaltstack(nullptr, &seen);
  say("armed inside %d, flags afterwards %x, size %zu", armed_inside.load(), static_cast<unsigned>(seen.ss_flags),
      seen.ss_size);
  return 0;
}

__attribute__((noinline)) void thread_from_below() {
  std::thread([] { burn(0.001); }).join();
}

/// A frame with an unreadable page, like a coroutine's stack in a local array, above frames that make threads.
int guard_page_in_a_frame(int, char**) {
  char room[4 * page];
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(room) + page - 1) / page * page;
  auto* const guard = reinterpret_cast<char*>(first);  // NOLINT: an address
  burn(0.05);
  require(mprotect(guard, page, PROT_NONE) == 0, "mprotect");
  for (int n = 0; n < 50; ++n) {
    thread_from_below();
    usleep(1000);
  }
  require(mprotect(guard, page, PROT_READ | PROT_WRITE) == 0, "mprotect");
  say("made");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"unused_alternate", unused_alternate},
                   {"faults_on_alternate", faults_on_alternate},
                   {"no_alternate", no_alternate},
                   {"alternate_as_read", alternate_as_read},
                   {"coroutines", coroutines},
                   {"smallest_stack", smallest_stack},
                   {"near_the_end", near_the_end},
                   {"below_the_red_zone", below_the_red_zone},
                   {"stack_pointer_as_a_register", stack_pointer_as_a_register},
                   {"overflow_caught", overflow_caught},
                   {"jump_off_alternate", jump_off_alternate},
                   {"disarming", disarming},
                   {"guard_page_in_a_frame", guard_page_in_a_frame}},
                  argc, argv);
}
