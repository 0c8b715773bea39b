// SPDX-License-Identifier: Apache-2.0
// Threads that are cancelled, that end in odd ways, that were made without a library, and operations on all threads at
// once.
#include <dirent.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "hostile.h"

namespace {

using namespace hostile;

std::atomic<int> cleaned{0};
std::atomic<int> destroyed{0};

struct Guard {
  ~Guard() { ++destroyed; }
};

/// Can be cancelled at any instruction: it has no objects to destroy.
void store_for_ever() {
  for (std::uint32_t n = 0;; ++n) {
    __atomic_store_n(&shared_line.words[1], n, __ATOMIC_RELAXED);
  }
}
// The compiler must not see that it throws nothing, because the cancellation is thrown through its caller.
void (*volatile store_for_ever_unseen)() = store_for_ever;

/// Threads that are cancelled while they burn (asynchronously) or sleep (at cancellation points); handlers run, objects
/// are destroyed.
int cancelled(int, char**) {
  const Burners burners(1);
  int ended = 0;
  for (int n = 0; n < 60; ++n) {
    const auto body = [](void* deferred) -> void* {
      const Guard guard;
      pthread_cleanup_push(
          [](void*) {
            ++cleaned;
            burn(0.0005);
          },
          nullptr);
      if (deferred != nullptr) {
        for (;;) {
          burn(0.0005);
          usleep(100);
        }
      }
      int before = 0;
      pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
      store_for_ever_unseen();
      pthread_cleanup_pop(0);
      return nullptr;
    };
    pthread_t thread{};
    pthread_create(&thread, nullptr, body, n % 2 == 0 ? nullptr : &cleaned);
    burn(0.005);
    pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    ended += result == PTHREAD_CANCELED ? 1 : 0;
  }
  say("cancelled %d, cleaned %d, destroyed %d", ended, cleaned.load(), destroyed.load());
  return 0;
}

/// The main thread ends first; the others go on, and one of them ends the process.
int main_ends_first(int, char**) {
  std::thread([] {
    exchange(0.4);
    say("a thread ends the process");
    std::exit(12);
  }).detach();
  burn(0.05);
  pthread_exit(nullptr);
}

/// The main thread ends by a raw exit.
int main_ends_raw(int, char**) {
  std::thread([] {
    exchange(0.4);
    say("a thread ends the process");
    _exit(13);
  }).detach();
  burn(0.05);
  syscall(SYS_exit, 0);
  return 1;
}

/// All threads of the process change user: libc signals each of them.
int change_user(int, char**) {
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  const uid_t user = geteuid() == 0 ? 65534 : geteuid();
  std::vector<std::thread> threads;
  for (int n = 0; n < 6; ++n) {
    threads.emplace_back([&, n] {
      while (!over) {
        if (n % 2 == 0) {
          burn(0.01);
        } else {
          usleep(10'000);
        }
      }
      wrong += static_cast<uid_t>(syscall(SYS_geteuid)) == user ? 0 : 1;
    });
  }
  exchange(0.1);
  say("setresuid %d", setresuid(user, user, user));
  exchange(0.1);
  over = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  say("threads with another user: %d", wrong.load());
  return 0;
}

/// A thread that ends by a raw exit leaves its timers, its armed words and its place behind.
int raw_exits(int, char**) {
  const Burners burners(1);
  for (int n = 0; n < 60; ++n) {
    std::thread([] {
      burn(0.005);
      syscall(SYS_exit, 0);
    }).join();
  }
  // The observer deletes a dead thread's timer at its next look.
  constexpr int looks = 20;
  for (int i = 0; i < looks && timers_in_kernel() > threads_in_kernel(); ++i) {
    exchange(0.1);
  }
  say("more timers than threads: %s, threads %d", yes(timers_in_kernel() > threads_in_kernel()), threads_in_kernel());
  return 0;
}

/// A holder of robust locks dies; the next owner is told.
int robust_locks(int, char**) {
  const Burners burners(1);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  auto* mutex =
      static_cast<pthread_mutex_t*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pthread_mutex_init(mutex, &attributes);
  int told = 0;
  for (int n = 0; n < 40; ++n) {
    if (n % 2 == 0) {
      std::thread([mutex] {
        pthread_mutex_lock(mutex);
        burn(0.005);
      }).join();
    } else {
      const pid_t child = fork();
      if (child == 0) {
        pthread_mutex_lock(mutex);
        burn(0.005);
        kill(getpid(), SIGKILL);
      }
      end_of(child);
    }
    const int result = pthread_mutex_lock(mutex);
    told += result == EOWNERDEAD ? 1 : 0;
    pthread_mutex_consistent(mutex);
    pthread_mutex_unlock(mutex);
  }
  say("told %d", told);
  return 0;
}

/// A program may use breakpoints of its own, all four.
int own_breakpoints(int, char**) {
  exchange(0.3);
  static Line lines[4];
  int events[4];
  int opened = 0;
  for (int n = 0; n < 4; ++n) {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_BREAKPOINT;
    attributes.size = sizeof attributes;
    attributes.bp_type = 2;  // HW_BREAKPOINT_W
    attributes.bp_addr = reinterpret_cast<std::uintptr_t>(&lines[n]);
    attributes.bp_len = 8;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    events[n] = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
    opened += events[n] >= 0 ? 1 : 0;
  }
  const Burners burners(1);
  for (int n = 0; n < 100; ++n) {
    for (Line& line : lines) {
      __atomic_store_n(&line.words[0], n, __ATOMIC_RELAXED);
    }
    burn(0.002);
  }
  say("opened %d", opened);
  for (const int event : events) {
    std::uint64_t count = 0;
    if (read(event, &count, sizeof count) == sizeof count) {
      say("stores %llu", static_cast<unsigned long long>(count));
    }
  }
  return 0;
}

/// Names, processors, priorities and the number of threads are the program's.
int as_seen(int, char**) {
  const Burners burners(2);
  exchange(0.2);
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  say("threads %d, name %s, processors as there are: %s, nice %d, policy %d, dumpable %d, no new privileges %d",
      threads_in_kernel(), name, yes(CPU_COUNT(&set) == sysconf(_SC_NPROCESSORS_ONLN)), getpriority(PRIO_PROCESS, 0),
      sched_getscheduler(0), prctl(PR_GET_DUMPABLE), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  for (const int resource : {RLIMIT_AS, RLIMIT_CORE, RLIMIT_CPU, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_MEMLOCK,
                             RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_RSS, RLIMIT_SIGPENDING, RLIMIT_STACK}) {
    rlimit limit{};
    getrlimit(static_cast<__rlimit_resource>(resource), &limit);
    say("limit %d: %llx %llx", resource, static_cast<unsigned long long>(limit.rlim_cur),
        static_cast<unsigned long long>(limit.rlim_max));
  }
  return 0;
}

/// A thread that is not dumpable cannot be inspected, and must not be.
int not_dumpable(int, char**) {
  require(prctl(PR_SET_DUMPABLE, 0) == 0, "PR_SET_DUMPABLE");
  exchange(0.4);
  say("dumpable %d", prctl(PR_GET_DUMPABLE));
  const pid_t child = fork();
  if (child == 0) {
    exchange(0.05);
    _exit(4);
  }
  say("%s", end_of(child).c_str());
  return 0;
}

/// errno is each thread's own, whatever happens to the thread.
int errors(int, char**) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int n = 0; n < 3; ++n) {
    threads.emplace_back([&, n] {
      errno = 1000 + n;
      for (std::uint32_t i = 0; i < 20'000'000; ++i) {
        __atomic_store_n(&shared_line.words[n], i, __ATOMIC_RELAXED);
        wrong += errno == 1000 + n ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  say("wrong %d", wrong.load());
  return 0;
}

/// Returns the number of threads of all processes of this user, the recorder's among them.
int threads_of_user() {
  int count = 0;
  DIR* folder = opendir("/proc");
  while (const dirent* entry = readdir(folder)) {
    struct stat process {};
    const std::string path = std::string("/proc/") + entry->d_name;
    if (std::atoi(entry->d_name) > 0 && stat(path.c_str(), &process) == 0 && process.st_uid == geteuid()) {
      std::ifstream file(path + "/stat");
      std::string text;
      std::getline(file, text);
      std::istringstream fields(text.substr(text.rfind(')') + 2));
      for (int n = 0; n < 18 && fields >> text; ++n) {
      }
      count += std::stoi(text);
    }
  }
  closedir(folder);
  return count;
}

/// As many threads as RLIMIT_NPROC lets a user have.
int as_many_as_allowed(int, char**) {
  rlimit limit{};
  getrlimit(RLIMIT_NPROC, &limit);
  exchange(0.3);
  const auto now_in_use = static_cast<rlim_t>(threads_of_user());
  limit.rlim_cur = now_in_use + 30;
  require(setrlimit(RLIMIT_NPROC, &limit) == 0, "setrlimit");
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  try {
    while (threads.size() < 100) {
      threads.emplace_back([&] {
        while (!over) {
          usleep(10'000);
        }
      });
    }
  } catch (const std::system_error& error) {
    say("%zu threads, then %s", threads.size(), std::strerror(error.code().value()));
  }
  over = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  return 0;
}

/// Floating point, vector and flag registers survive every interruption.
int registers(int, char**) {
  std::atomic<int> wrong{0};
  const auto body = [&](int word) {
    double x = 0.5 + word;
    const double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + 0.3;
    std::uint64_t a = 0x1111;
    std::uint64_t b = 0x2222;
    while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < end) {
      std::uint64_t n = 200'000;
      double kept = x;
      asm volatile(
          "movq %[kept], %%xmm8\n movq %[kept], %%xmm15\n"
          "std\n cld\n stc\n"
          "1: mov %[n], (%[word])\n"
          "lea -1(%[n]), %[n]\n"  // leaves the carry flag alone
          "jrcxz 2f\n"
          "jmp 1b\n"
          "2: adc $0, %[a]\n"
          "pxor %%xmm8, %%xmm15\n movq %%xmm15, %%rax\n add %%rax, %[b]\n"
          : [n] "+c"(n), [a] "+r"(a), [b] "+r"(b)
          : [word] "r"(&shared_line.words[word]), [kept] "r"(kept)
          : "rax", "xmm8", "xmm15", "memory", "cc");
      wrong += a == 0x1112 && b == 0x2222 ? 0 : 1;
      a = 0x1111;
      b = 0x2222;
      x += 0.25;
    }
  };
  std::thread other(body, 1);
  body(0);
  other.join();
  say("wrong %d", wrong.load());
  return 0;
}

std::atomic<int> rounds{0};
pthread_key_t round_key;

/// Thread-local objects are destroyed, and destructors of keys are called again for newly set values, as often as libc
/// specifies.
int last_words(int, char**) {
  const Burners burners(1);
  require(pthread_key_create(&round_key,
                             [](void* value) {
                               ++rounds;
                               burn(0.0005);
                               pthread_setspecific(round_key, value);
                             }) == 0,
          "pthread_key_create");
  for (int n = 0; n < 100; ++n) {
    std::thread([] {
      thread_local const Guard guard;
      static_cast<void>(&guard);
      pthread_setspecific(round_key, &round_key);
      burn(0.001);
    }).join();
  }
  say("%d rounds, %d objects", rounds.load(), destroyed.load());
  return 0;
}

/// All keys that libc has to give.
int keys(int, char**) {
  exchange(0.2);
  std::vector<pthread_key_t> taken;
  pthread_key_t key = 0;
  while (pthread_key_create(&key, nullptr) == 0) {
    taken.push_back(key);
  }
  say("%zu keys", taken.size());
  for (int n = 0; n < 20; ++n) {
    std::thread([&] {
      int wrong = 0;
      for (const pthread_key_t one : taken) {
        wrong += pthread_getspecific(one) == nullptr && pthread_setspecific(one, &taken) == 0 ? 0 : 1;
      }
      burn(0.005);
      if (wrong != 0) {
        say("%d keys had a value", wrong);
      }
    }).join();
  }
  return 0;
}

/// Locks that hand their owner a waiter's priority, and whose owners die.
int inheriting_locks(int, char**) {
  static pthread_mutex_t lock;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  require(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT) == 0, "PTHREAD_PRIO_INHERIT");
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&lock, &attributes);
  std::atomic<int> died{0};
  std::atomic<int> wrong{0};
  std::uint64_t sum = 0;
  const auto work = [&](bool dies) {
    for (int n = 0; n < 2000; ++n) {
      const int result = pthread_mutex_lock(&lock);
      if (result == EOWNERDEAD) {
        ++died;
        pthread_mutex_consistent(&lock);
      } else if (result != 0) {
        ++wrong;
      }
      ++sum;
      burn(0.00002);
      if (dies && n == 1999) {
        return;
      }
      pthread_mutex_unlock(&lock);
    }
  };
  std::thread others[4];
  for (int n = 0; n < 4; ++n) {
    others[n] = std::thread(work, n == 0);
  }
  for (std::thread& other : others) {
    other.join();
  }
  if (pthread_mutex_lock(&lock) == EOWNERDEAD) {
    ++died;
  }
  say("sum %llu, died %d, wrong %d", static_cast<unsigned long long>(sum), died.load(), wrong.load());
  return 0;
}

std::atomic<int> received{0};

/// Threads are sent signals from their first instruction to their last; the handler asks for limits and allocates.
int signals_from_the_start(int, char**) {
  exchange(0.2);
  rlimit first{};
  getrlimit(RLIMIT_NOFILE, &first);
  static rlim_t wanted;
  static std::atomic<int> other_limits{0};
  wanted = first.rlim_cur;
  handle(SIGUSR1, [](int) {
    rlimit seen{};
    getrlimit(RLIMIT_NOFILE, &seen);
    other_limits += seen.rlim_cur == wanted ? 0 : 1;
    ++received;
  });
  int sent = 0;
  for (int n = 0; n < 60; ++n) {
    std::atomic<bool> over{false};
    std::thread target([&over] {
      burn(0.0005);
      while (!over) {
        sched_yield();
      }
    });
    for (int k = 0; k < 5; ++k) {
      const int before = received;
      sent += pthread_kill(target.native_handle(), SIGUSR1) == 0 ? 1 : 0;
      while (received == before) {
        sched_yield();
      }
    }
    over = true;
    target.join();
  }
  say("sent %d, received %d, other limits %d", sent, received.load(), other_limits.load());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"cancelled", cancelled},
                   {"main_ends_first", main_ends_first},
                   {"main_ends_raw", main_ends_raw},
                   {"change_user", change_user},
                   {"raw_exits", raw_exits},
                   {"robust_locks", robust_locks},
                   {"own_breakpoints", own_breakpoints},
                   {"as_seen", as_seen},
                   {"not_dumpable", not_dumpable},
                   {"errors", errors},
                   {"as_many_as_allowed", as_many_as_allowed},
                   {"registers", registers},
                   {"last_words", last_words},
                   {"keys", keys},
                   {"inheriting_locks", inheriting_locks},
                   {"signals_from_the_start", signals_from_the_start}},
                  argc, argv);
}
