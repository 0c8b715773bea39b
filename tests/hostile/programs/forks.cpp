// SPDX-License-Identifier: Apache-2.0
// Forks and execs at the worst moments: while other threads allocate, in signal handlers, with handlers of the
// program's own around them.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "hostile.h"

namespace {

using namespace hostile;

/// execs that fail, in a process with busy threads, change nothing.
int failed_exec(int, char**) {
  const Burners burners(1);
  exchange(0.15);
  char nothing[] = "/no/such/program";
  char folder[] = "/";
  char data[] = "/proc/self/status";
  char* arguments[] = {nothing, nullptr};
  for (int n = 0; n < 5; ++n) {
    execv(nothing, arguments);
    execv(folder, arguments);
    execv(data, arguments);
    execve("", arguments, environ);
    exchange(0.03);
  }
  say("still here: %s", std::strerror(errno));
  return 0;
}

/// An exec from a thread that is not the first, with others busy; then again, and again.
int exec_from_a_thread(int, char** argv) {
  const int left = argv[0] == nullptr ? 3 : std::stoi(argv[0]);
  exchange(0.1);
  say("left %d, threads %d", left, threads_in_kernel());
  if (left == 0) {
    return 6;
  }
  std::thread([] { burn(10); }).detach();
  std::thread([left] {
    burn(0.03);
    execl("/proc/self/exe", "forks", "exec_from_a_thread", std::to_string(left - 1).c_str(), nullptr);
  }).join();
  return 1;
}

/// Children of a process whose other threads hold locks of the heap, or of another table of blocks, at the moment of
/// the fork. Each child allocates and makes a thread.
int while_allocating(int, char**) {
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int n = 0; n < 3; ++n) {
    threads.emplace_back([&over, n] {
      std::vector<void*> blocks(256, nullptr);
      std::uint32_t state = static_cast<std::uint32_t>(n) + 1;
      while (!over) {
        state = state * 1664525U + 1013904223U;
        void*& block = blocks[state >> 24U];
        std::free(block);
        block = std::malloc(16 + (state & 0x3fffU));
        __atomic_store_n(&shared_line.words[n], state, __ATOMIC_RELAXED);
      }
      for (void* block : blocks) {
        std::free(block);
      }
    });
  }
  int wrong = 0;
  for (int n = 0; n < 60; ++n) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);  // one that waits for a lock that nobody will give back is killed
      for (int i = 0; i < 100; ++i) {
        std::free(std::malloc(100 + 1000 * i));
      }
      std::thread([] { std::free(std::malloc(100'000)); }).join();
      _exit(n % 100);
    }
    wrong += end_of(child) == "exit " + std::to_string(n % 100) ? 0 : 1;
  }
  over = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  say("wrong %d", wrong);
  return 0;
}

/// Handlers that a program has registered are called around each fork, in the order that POSIX has.
int with_handlers(int, char**) {
  pthread_atfork([] { put("prepare 1\n"); }, [] { put("parent 1\n"); }, nullptr);
  pthread_atfork([] { put("prepare 2\n"); }, [] { put("parent 2\n"); }, [] { burn(0.01); });
  const Burners burners(1);
  exchange(0.2);
  for (int n = 0; n < 3; ++n) {
    const pid_t child = fork();
    if (child == 0) {
      _exit(n);
    }
    say("%s", end_of(child).c_str());
  }
  return 0;
}

int alarms_left = 0;

/// A handler of an alarm forks, and the child's does, too; the last one executes another program.
void fork_or_exec(int) {
  if (alarms_left == 0) {
    execl("/proc/self/exe", "forks", "executed", nullptr);
    _exit(90);
  }
  --alarms_left;
  const pid_t child = fork();
  if (child == 0) {
    burn(0.02);
    _exit(61);
  }
  int status = 0;
  waitpid(child, &status, 0);
  put(WEXITSTATUS(status) == 61 ? "child\n" : "another end of the child\n");
}

int in_handlers(int, char**) {
  handle(SIGALRM, fork_or_exec);
  alarms_left = 10;
  sigset_t alarm_only;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm_only, nullptr);
  const Burners burners(1);  // not the one that has the alarms
  pthread_sigmask(SIG_UNBLOCK, &alarm_only, nullptr);
  const itimerval often{{0, 20'000}, {0, 20'000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  burn(20);
  return 1;
}

/// After an exec in a handler: the signal is blocked, its disposition the default again, the timer still runs.
int executed(int, char**) {
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, nullptr, &blocked);
  struct sigaction action {};
  sigaction(SIGALRM, nullptr, &action);
  itimerval timer{};
  getitimer(ITIMER_REAL, &timer);
  exchange(0.1);
  say("blocked %d, default %s, timer of %ld us", sigismember(&blocked, SIGALRM), yes(action.sa_handler == SIG_DFL),
      static_cast<long>(timer.it_interval.tv_usec));
  return 62;
}

/// Works, and has children and threads, before and after its recorder is gone.
int alone_later(int, char**) {
  exchange(0.3);
  say("ready");
  usleep(300'000);
  for (int n = 0; n < 10; ++n) {
    std::thread([] { burn(0.01); }).join();
    const pid_t child = fork();
    if (child == 0) {
      exchange(0.01);
      _exit(63);
    }
    say("%s", end_of(child).c_str());
  }
  exchange(0.2);
  say("done");
  return 0;
}

/// Threads come and go while another one forks. The child calls functions that its process has not called yet, and
/// ends.
int among_short_threads(int, char**) {
  std::atomic<bool> stop{false};
  const auto come_and_go = [&] {
    while (!stop) {
      std::thread([] {}).join();
    }
  };
  std::thread first(come_and_go);
  std::thread second(come_and_go);
  int hung = 0;
  for (const double end = now() + 3; hung == 0 && now() < end;) {
    const pid_t child = fork();
    if (child == 0) {
      rlimit limit{};
      getrlimit(RLIMIT_NOFILE, &limit);
      syscall(SYS_getppid);
      _exit(0);
    }
    int status = 0;
    const double patience = now() + 5;
    while (waitpid(child, &status, WNOHANG) == 0 && hung == 0) {
      usleep(100);
      hung = now() > patience ? 1 : 0;
    }
    if (hung != 0) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    }
  }
  stop = true;
  first.join();
  second.join();
  say("a child hung: %s", yes(hung != 0));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"failed_exec", failed_exec},
                   {"exec_from_a_thread", exec_from_a_thread},
                   {"while_allocating", while_allocating},
                   {"with_handlers", with_handlers},
                   {"in_handlers", in_handlers},
                   {"executed", executed},
                   {"alone_later", alone_later},
                   {"among_short_threads", among_short_threads}},
                  argc, argv);
}
