// SPDX-License-Identifier: Apache-2.0
// Every signal, sent, blocked, waited for, ignored, handled and fatal, as a program may want it.
#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "hostile.h"

namespace {

using namespace hostile;

/// True for signals that a program may catch. libc keeps 32 and 33 for itself.
bool is_for_programs(int number) { return number != SIGKILL && number != SIGSTOP && (number < 32 || number > 33); }

sigset_t all_signals() {
  sigset_t all;
  sigfillset(&all);
  return all;
}

int queue_to_self(int number, int value) {
  sigval word{};
  word.sival_int = value;
  return sigqueue(getpid(), number, word);
}

/// All signals are ignored, then sent.
int ignored(int, char**) {
  for (int number = 1; number <= SIGRTMAX; ++number) {
    if (is_for_programs(number) && number != SIGCHLD) {
      handle(number, SIG_IGN);
    }
  }
  exchange(0.2);
  for (int number = 1; number <= SIGRTMAX; ++number) {
    if (is_for_programs(number)) {
      kill(getpid(), number);
      queue_to_self(number, 1);
    }
  }
  exchange(0.2);
  say("alive");
  return 0;
}

/// All are blocked, sent and taken by sigtimedwait, one after the other.
int waited_for(int, char**) {
  const sigset_t all = all_signals();
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  const Burners burners(1);
  exchange(0.1);
  for (int number = 1; number <= SIGRTMAX; ++number) {
    if (!is_for_programs(number)) {
      continue;
    }
    queue_to_self(number, number * 3);
    burn(0.005);
    const timespec patience{2, 0};
    siginfo_t info{};
    const int got = sigtimedwait(&all, &info, &patience);
    say("%d: got %d, value %d, code %d", number, got, info.si_value.sival_int, info.si_code);
  }
  return 0;
}

/// The same for one signal, which is directed at this thread and known alone in its set.
int one_waited_for(int, char** argv) {
  const int number = argv[0][0] == 'R' ? SIGRTMAX : std::stoi(argv[0]);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  exchange(0.2);
  for (int n = 0; n < 20; ++n) {
    pthread_kill(pthread_self(), number);
    burn(0.01);
    int got = 0;
    sigwait(&set, &got);
    if (got != number) {
      say("got %d", got);
    }
  }
  sigset_t pending;
  sigpending(&pending);
  say("still pending: %s", yes(sigismember(&pending, number) == 1));
  return 0;
}

/// All are taken from a descriptor.
int by_descriptor(int, char**) {
  const sigset_t all = all_signals();
  sigprocmask(SIG_BLOCK, &all, nullptr);
  const int fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  const Burners burners(1);
  exchange(0.1);
  for (int number = 1; number <= SIGRTMAX; ++number) {
    if (!is_for_programs(number)) {
      continue;
    }
    queue_to_self(number, number * 5);
    burn(0.005);
    pollfd ready{fd, POLLIN, 0};
    signalfd_siginfo info{};
    const bool came = poll(&ready, 1, 2000) == 1 && read(fd, &info, sizeof info) == sizeof info;
    say("%d: came %s, is %u, value %d", number, yes(came), info.ssi_signo, info.ssi_int);
  }
  pollfd ready{fd, POLLIN, 0};
  say("more: %d", poll(&ready, 1, 20));
  return 0;
}

/// Each signal's default, in a child that is busy when it comes.
int defaults(int, char**) {
  exchange(0.1);
  for (int number = 1; number <= SIGRTMAX; ++number) {
    const bool stops = number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
    if (stops || number == 32 || number == 33) {
      continue;
    }
    const pid_t child = fork();
    if (child == 0) {
      burn(0.02);
      _exit(7);
    }
    const timespec moment{0, 8'000'000};
    nanosleep(&moment, nullptr);
    kill(child, number);
    say("%d: %s", number, end_of(child).c_str());
  }
  return 0;
}

std::atomic<int> handled[65];
std::atomic<int> values{0};
void count_signal(int number, siginfo_t* info, void*) {
  ++handled[number];
  if (info->si_code == SI_QUEUE) {
    values += info->si_value.sival_int;
  }
}

/// All have a handler, which queries return, and which is called once for each sent signal.
int handlers(int, char**) {
  exchange(0.2);
  int not_default = 0;
  int not_found = 0;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    if (!is_for_programs(number)) {
      continue;
    }
    struct sigaction before {};
    struct sigaction action {};
    action.sa_sigaction = count_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(number, &action, &before);
    not_default += before.sa_handler != SIG_DFL || before.sa_flags != 0 ? 1 : 0;
    struct sigaction found {};
    sigaction(number, nullptr, &found);
    not_found += found.sa_sigaction != count_signal || (found.sa_flags & ~0x04000000) != action.sa_flags ||
                         sigismember(&found.sa_mask, SIGUSR2) != 1 || sigismember(&found.sa_mask, SIGTRAP) != 0
                     ? 1
                     : 0;
  }
  const Burners burners(1);
  for (int number = 1; number <= SIGRTMAX; ++number) {
    if (is_for_programs(number)) {
      queue_to_self(number, 1);
      burn(0.002);
    }
  }
  say("not the default before: %d, not found: %d, values %d", not_default, not_found, values.load());
  for (int number = 1; number <= SIGRTMAX; ++number) {
    if (is_for_programs(number) && handled[number] != 1) {
      say("%d handled %d times", number, handled[number].load());
    }
  }
  return 0;
}

std::string blocked_now() {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  std::string text;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    text += sigismember(&now, number) == 1 ? '1' : '0';
  }
  return text;
}

std::string ignored_now() {
  std::string text;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    struct sigaction action {};
    text += sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN ? '1' : '0';
  }
  return text;
}

/// Masks are as requested, in each thread, in handlers, after siglongjmp, and after an exec.
int masks(int, char** argv) {
  if (argv[0] != nullptr) {
    say("after exec: %s, ignored %s", blocked_now().c_str(), ignored_now().c_str());
    return 0;
  }
  say("at start: %s", blocked_now().c_str());
  const sigset_t all = all_signals();
  exchange(0.1);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  exchange(0.1);
  say("all: %s", blocked_now().c_str());
  std::thread([] {
    burn(0.05);
    say("of a thread: %s", blocked_now().c_str());
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    burn(0.05);
    say("none: %s", blocked_now().c_str());
  }).join();
  sigset_t few;
  sigemptyset(&few);
  sigaddset(&few, SIGRTMAX);
  sigaddset(&few, SIGTRAP);
  sigaddset(&few, SIGURG);
  pthread_sigmask(SIG_UNBLOCK, &few, nullptr);
  sigjmp_buf here;
  if (sigsetjmp(here, 1) == 0) {
    pthread_sigmask(SIG_BLOCK, &few, nullptr);
    siglongjmp(here, 1);
  }
  say("after a jump: %s", blocked_now().c_str());
  ucontext_t context{};
  static volatile bool again = false;
  getcontext(&context);
  if (!again) {
    again = true;
    pthread_sigmask(SIG_BLOCK, &few, nullptr);
    setcontext(&context);
  }
  say("after setcontext: %s", blocked_now().c_str());
  pthread_sigmask(SIG_SETMASK, &few, nullptr);
  handle(SIGRTMAX, SIG_IGN);
  handle(SIGTRAP, SIG_IGN);
  handle(SIGURG, SIG_IGN);
  handle(SIGPROF, SIG_IGN);
  execl("/proc/self/exe", "signals", "masks", "again", nullptr);
  return 1;
}

/// A thread takes all signals, the others have them blocked and work.
int signal_thread(int, char**) {
  const sigset_t all = all_signals();
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  std::atomic<int> taken{0};
  std::thread taker([&] {
    for (int number = 0; number != SIGTERM;) {
      if (sigwait(&all, &number) == 0) {
        ++taken;
      }
    }
  });
  {
    const Burners burners(2);
    for (int number = 1; number <= SIGRTMAX; ++number) {
      if (is_for_programs(number) && number != SIGTERM) {
        const int before = taken;
        kill(getpid(), number);
        burn(0.005);
        for (int n = 0; n < 200 && taken == before; ++n) {
          usleep(5000);
        }
        if (taken != before + 1) {
          say("%d: taken %d times", number, taken - before);
        }
      }
    }
  }
  kill(getpid(), SIGTERM);
  taker.join();
  say("taken %d", taken.load());
  return 0;
}

/// A thread that sleeps in pause() is woken by one signal, however many others come.
int pauses(int, char**) {
  handle(SIGUSR1, [](int) {});
  std::atomic<int> woken{0};
  std::atomic<int> tid{0};
  constexpr int rounds = 150;
  std::thread sleeper([&] {
    tid = static_cast<int>(syscall(SYS_gettid));
    for (int n = 0; n < rounds; ++n) {
      burn(0.0005);
      pause();
      ++woken;
    }
  });
  const Burners burners(2);
  while (tid == 0) {
    usleep(1000);
  }
  const std::string where = "/proc/self/task/" + std::to_string(tid) + "/syscall";
  int lost = 0;
  int woken_by_none = 0;
  for (int n = 0; n < rounds; ++n) {
    for (int number = -1; number != SYS_pause && woken == n;) {
      std::ifstream(where) >> number;
    }
    if (woken > n) {
      ++woken_by_none;
      continue;
    }
    pthread_kill(sleeper.native_handle(), SIGUSR1);
    for (int tries = 1; woken == n; ++tries) {
      usleep(200);
      if (tries % 2000 == 0) {
        ++lost;
        pthread_kill(sleeper.native_handle(), SIGUSR1);
      }
    }
  }
  sleeper.join();
  say("signals lost: %d, woken by none: %d", lost, woken_by_none);
  return 0;
}

sigjmp_buf way_out;
/// A handler is left by a jump while another thread stores to the same line.
int jumps(int, char**) {
  handle(SIGALRM, [](int) { siglongjmp(way_out, 1); });
  const sigset_t all = all_signals();
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  const Burners burners(1);
  pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
  const itimerval often{{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  static volatile int count = 0;
  if (sigsetjmp(way_out, 1) != 0) {
    count = count + 1;
  }
  if (count < 300) {
    for (;;) {
      burn(1);
    }
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  say("jumped %d times, mask empty: %s", count, yes(blocked_now().find('1') == std::string::npos));
  return 0;
}

volatile std::sig_atomic_t depth = 0;
volatile std::sig_atomic_t deepest = 0;
void nest(int) {
  depth = depth + 1;
  deepest = std::max(deepest, depth);
  if (depth < 20) {
    burn(0.01);
    raise(SIGUSR1);
    burn(0.01);
  }
  depth = depth - 1;
}
int nested(int, char**) {
  handle(SIGUSR1, nest, SA_NODEFER);
  const Burners burners(1);
  raise(SIGUSR1);
  say("deepest %d, depth %d", static_cast<int>(deepest), static_cast<int>(depth));
  return 0;
}

/// Signals queue up in order and none is lost, though the thread is busy with others.
int queue(int, char**) {
  static std::atomic<int> next{0};
  static std::atomic<int> out_of_order{0};
  handle(SIGRTMIN + 3, [](int, siginfo_t* info, void*) {
    out_of_order += info->si_value.sival_int == next ? 0 : 1;
    ++next;
  });
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGRTMIN + 3);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  exchange(0.2);
  const std::string before = status_field("SigQ");
  for (int n = 0; n < 1000; ++n) {
    queue_to_self(SIGRTMIN + 3, n);
  }
  const std::string after = status_field("SigQ");
  say("queued more: %d, pending %s", std::stoi(after) - std::stoi(before), status_field("ShdPnd").c_str());
  pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
  exchange(0.1);
  say("came %d, out of order %d, queued at most one a thread: %s", next.load(), out_of_order.load(),
      yes(std::stoi(status_field("SigQ")) <= threads_in_kernel()));
  return 0;
}

/// A parent's signals reach its child as such.
int from_parent(int, char**) {
  const auto child_that = [](void (*prepare)()) {
    int ends[2];
    require(pipe(ends) == 0, "pipe");
    const pid_t child = fork();
    if (child == 0) {
      prepare();
      burn(0.03);
      require(write(ends[1], "r", 1) == 1, "write");
      burn(0.1);
      _exit(5);
    }
    char ready = 0;
    require(read(ends[0], &ready, 1) == 1, "read");
    close(ends[0]);
    close(ends[1]);
    return child;
  };
  for (const int number : {SIGRTMAX, SIGTRAP, SIGURG, SIGPROF, SIGRTMIN}) {
    pid_t child = child_that([] {});
    kill(child, number);
    say("%d by default: %s", number, end_of(child).c_str());
    child = child_that([] {
      for (const int ignored_number : {SIGRTMAX, SIGTRAP, SIGURG, SIGPROF, SIGRTMIN}) {
        handle(ignored_number, SIG_IGN);
      }
    });
    kill(child, number);
    say("%d ignored: %s", number, end_of(child).c_str());
    child = child_that([] {
      for (const int caught : {SIGRTMAX, SIGTRAP, SIGURG, SIGPROF, SIGRTMIN}) {
        handle(caught, [](int) { _exit(66); });
      }
    });
    kill(child, number);
    say("%d caught: %s", number, end_of(child).c_str());
  }
  return 0;
}

/// A child is stopped and goes on.
int stopped(int, char**) {
  const pid_t child = fork();
  if (child == 0) {
    const Burners burners(1);
    burn(0.4);
    _exit(3);
  }
  for (int n = 0; n < 5; ++n) {
    usleep(30'000);
    int status = 0;
    kill(child, SIGSTOP);
    waitpid(child, &status, WUNTRACED);
    const bool stops = WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;
    kill(child, SIGCONT);
    waitpid(child, &status, WCONTINUED);
    say("stopped: %s, continued: %s", yes(stops), yes(WIFCONTINUED(status)));
  }
  say("%s", end_of(child).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"ignored", ignored},
                   {"waited_for", waited_for},
                   {"one_waited_for", one_waited_for},
                   {"by_descriptor", by_descriptor},
                   {"defaults", defaults},
                   {"handlers", handlers},
                   {"masks", masks},
                   {"signal_thread", signal_thread},
                   {"pauses", pauses},
                   {"jumps", jumps},
                   {"nested", nested},
                   {"queue", queue},
                   {"from_parent", from_parent},
                   {"stopped", stopped}},
                  argc, argv);
}
