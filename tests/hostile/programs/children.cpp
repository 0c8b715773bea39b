// SPDX-License-Identifier: Apache-2.0
// Children made in every way: their inheritance, their ends, and the notices to their parents.
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "hostile.h"

namespace {

using namespace hostile;

/// Burns, with a second thread, and ends with the given status: the child of most programs here.
int busy(int argc, char** argv) {
  exchange(argc > 1 ? std::stod(argv[1]) : 0.03);
  return argc > 0 ? std::stoi(argv[0]) : 0;
}

char self[] = "/proc/self/exe";

/// Arguments of an exec of this program as busy(status).
struct BusyArguments {
  explicit BusyArguments(int status) : status_text(std::to_string(status)) {}
  std::string status_text;
  char name[9] = "children";
  char what[5] = "busy";
  char* words[4] = {name, what, status_text.data(), nullptr};
};

/// Children by each way.
int ways_to_make(int, char**) {
  const Burners burners(1);
  exchange(0.1);
  pid_t child = fork();
  if (child == 0) {
    exchange(0.03);
    _exit(11);
  }
  say("fork: %s", end_of(child).c_str());
  BusyArguments arguments(12);
  child = vfork();
  if (child == 0) {
    execv(self, arguments.words);
    _exit(90);
  }
  say("vfork and exec: %s", end_of(child).c_str());
  child = vfork();
  if (child == 0) {
    _exit(13);
  }
  say("vfork and _exit: %s", end_of(child).c_str());
  require(posix_spawn(&child, self, nullptr, nullptr, arguments.words, environ) == 0, "posix_spawn");
  say("posix_spawn: %s", end_of(child).c_str());
  child = static_cast<pid_t>(syscall(SYS_fork));
  if (child == 0) {
    burn(0.05);
    syscall(SYS_exit_group, 14);
  }
  say("fork by syscall: %s", end_of(child).c_str());
  child = _Fork();
  if (child == 0) {
    burn(0.05);
    _exit(15);
  }
  say("_Fork: %s", end_of(child).c_str());
  clone_args how{};
  how.exit_signal = SIGCHLD;
  child = static_cast<pid_t>(syscall(SYS_clone3, &how, sizeof how));
  if (child == 0) {
    burn(0.05);
    syscall(SYS_exit_group, 16);
  }
  say("clone3: %s", end_of(child).c_str());
  say("system: %s", ending(std::system("exit 17")).c_str());
  FILE* pipe = popen("cat; exit 18", "w");
  std::fputs("through a pipe\n", pipe);
  say("popen: %s", ending(pclose(pipe)).c_str());
  return 0;
}

/// Threads in a child that libc's fork handlers do not know, while the parent exchanges lines.
int raw_fork_then_threads(int, char** argv) {
  const bool by_syscall = std::strcmp(argv[0], "syscall") == 0;
  const Burners burners(1);
  exchange(0.1);
  std::vector<pid_t> children;
  for (int n = 0; n < 4; ++n) {
    const pid_t child = by_syscall ? static_cast<pid_t>(syscall(SYS_fork)) : _Fork();
    if (child == 0) {
      for (int turn = 0; turn < 5; ++turn) {
        exchange(0.01);
      }
      _exit(30 + n);
    }
    burn(0.05);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    say("%s", end_of(child).c_str());
  }
  return 0;
}

/// A process that shares all memory with this one but is none of its threads.
int sharing_process(int, char**) {
  const Burners burners(1);
  exchange(0.1);
  static std::atomic<int> result{0};
  char* stack = static_cast<char*>(mmap(nullptr, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (int n = 0; n < 5; ++n) {
    const auto body = [](void*) -> int {
      for (std::uint32_t i = 0; i < 20'000'000; ++i) {
        __atomic_store_n(&shared_line.words[3], i, __ATOMIC_RELAXED);
      }
      ++result;
      syscall(SYS_exit, 21);
      return 0;
    };
    const pid_t child = clone(body, stack + (1 << 18), CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, nullptr);
    burn(0.02);
    const std::string end = end_of(child);
    say("%s, memory shared: %d", end.c_str(), result.load());
  }
  return 0;
}

/// Processes exchange lines in memory that they share; a child is killed in the middle.
int killed_child(int, char**) {
  auto* line = static_cast<Line*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const auto use = [line](int word, double cpu_seconds) {
    const double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + cpu_seconds;
    for (std::uint32_t n = 1; (n & 0x1fffU) != 0 || seconds_of(CLOCK_THREAD_CPUTIME_ID) < end; ++n) {
      __atomic_store_n(&line->words[word], n, __ATOMIC_RELAXED);
    }
  };
  for (int n = 0; n < 4; ++n) {
    const pid_t child = fork();
    if (child == 0) {
      std::thread other(use, 2, 10);
      use(1, 10);
      other.join();
      _exit(0);
    }
    use(0, 0.06);
    kill(child, n == 3 ? SIGTERM : SIGKILL);
    say("%s", end_of(child).c_str());
    use(0, 0.03);
  }
  return 0;
}

/// A daemon: two forks, a session of its own, no streams. The command ends long before it.
int daemonize(int, char**) {
  exchange(0.1);
  int ends[2];
  require(pipe(ends) == 0, "pipe");
  const pid_t child = fork();
  if (child == 0) {
    const bool leads = setsid() == getpid();
    if (fork() != 0) {
      _exit(0);
    }
    require(chdir("/") == 0, "chdir");
    umask(0);
    for (const int stream : {0, 1, 2}) {
      close(stream);
      open("/dev/null", O_RDWR);
    }
    exchange(0.2);
    const std::string text =
        std::string("leads its session: ") + yes(leads) + ", mask " + std::to_string(umask(0)) + "\n";
    _exit(write(ends[1], text.data(), text.size()) > 0 ? 0 : 1);
  }
  say("first child: %s", end_of(child).c_str());
  close(ends[1]);
  char text[200] = {};
  require(read(ends[0], text, sizeof text - 1) > 0, "read");
  put(text);
  char more = 0;
  say("the daemon has ended: %s", yes(read(ends[0], &more, 1) == 0));
  return 0;
}

/// A child whose parent has ended is adopted by the system, not by the recorder.
int orphan(int, char**) {
  exchange(0.1);
  int ends[2];
  require(pipe(ends) == 0, "pipe");
  const pid_t child = fork();
  if (child == 0) {
    const pid_t parent = getpid();
    if (fork() != 0) {
      burn(0.05);
      _exit(0);
    }
    while (getppid() == parent) {
      usleep(1000);
    }
    exchange(0.1);
    const std::string text = "adopted by " + std::to_string(getppid()) + "\n";
    _exit(write(ends[1], text.data(), text.size()) > 0 ? 0 : 1);
  }
  say("%s", end_of(child).c_str());
  char text[100] = {};
  require(read(ends[0], text, sizeof text - 1) > 0, "read");
  put(text);
  int status = 0;
  say("more children: %s", yes(waitpid(-1, &status, 0) >= 0));
  return 0;
}

/// A process that asks to adopt the children of its children, as supervisors do, gets them.
int adopts(int, char**) {
  require(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "PR_SET_CHILD_SUBREAPER");
  exchange(0.2);
  const pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) {
      exchange(0.05);
      _exit(27);
    }
    _exit(28);
  }
  say("child: %s", end_of(child).c_str());
  say("its child: %s", end_of(-1 /* any */).c_str());
  return 0;
}

/// The parent's end raises a signal; the end of one of its threads must not.
int death_signal(int, char**) {
  static std::atomic<int> came{0};
  handle(SIGUSR2, [](int) { ++came; });
  require(prctl(PR_SET_PDEATHSIG, SIGUSR2) == 0, "PR_SET_PDEATHSIG");
  exchange(0.3);
  say("came %d", came.load());
  return 0;
}

/// Prints a program's environment, and its child's if the environment was emptied or made for it.
int environment(int, char** argv) {
  std::vector<std::string> all;
  for (char** one = environ; *one != nullptr; ++one) {
    all.emplace_back(*one);
  }
  std::sort(all.begin(), all.end());
  const std::string depth = argv[0] == nullptr ? "0" : argv[0];
  exchange(0.1);
  for (const std::string& one : all) {
    say("%s: %s", depth.c_str(), one.c_str());
  }
  char name[] = "children";
  char what[] = "environment";
  char first[] = "1";
  char second[] = "2";
  char setting[] = "OWN=1";
  char* made[] = {setting, nullptr};
  char* empty[] = {nullptr};
  char* arguments[] = {name, what, depth == "0" ? first : second, nullptr};
  if (depth == "2") {
    return 0;
  }
  const pid_t child = fork();
  if (child == 0) {
    if (depth == "1") {
      execve(self, arguments, empty);
    }
    execve(self, arguments, made);
    _exit(90);
  }
  say("%s", end_of(child).c_str());
  return 0;
}

/// clearenv and exec, as `env -i` and login do it.
int cleared_environment(int, char**) {
  exchange(0.2);
  clearenv();
  BusyArguments arguments(19);
  execv(self, arguments.words);
  return 90;
}

/// Prints the inherited signals, limits and the like, before main begins.
int inherited(int, char**) {
  say("ignored %s, blocked %s", status_field("SigIgn").c_str(), status_field("SigBlk").c_str());
  const mode_t mask = umask(0);
  say("mask %o, children to come: %s, death signal %d", mask, yes(waitpid(-1, nullptr, WNOHANG) >= 0), [] {
    int number = -1;
    prctl(PR_GET_PDEATHSIG, &number);
    return number;
  }());
  exchange(0.3);
  return 0;
}

/// Runs a program that may not be observable, and reports how it ended.
int run(int, char** argv) {
  exchange(0.2);
  const pid_t child = fork();
  if (child == 0) {
    execv(argv[0], argv);
    _exit(90);
  }
  say("%s", end_of(child).c_str());
  return 0;
}

/// A child that is traced from its first instruction: every stop is reported, and none is of another's making.
int traced(int, char**) {
  exchange(0.1);
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    BusyArguments arguments(23);
    execv(self, arguments.words);
    _exit(90);
  }
  int stops = 0;
  for (int status = 0; waitpid(child, &status, 0) == child;) {
    if (!WIFSTOPPED(status)) {
      say("%s", ending(status).c_str());
      break;
    }
    ++stops;
    const int number = WSTOPSIG(status);
    if (stops > 20) {
      kill(child, SIGKILL);
    } else {
      say("stopped by %d", number);
    }
    ptrace(PTRACE_CONT, child, nullptr, number == SIGTRAP ? 0 : number);
  }
  say("stops %d", stops);
  return 0;
}

/// A parent that attaches to its busy child, reads its registers and memory, lets it go, several times.
int attached(int, char**) {
  const pid_t child = fork();
  if (child == 0) {
    const Burners burners(1);
    burn(0.35);
    _exit(24);
  }
  int wrong = 0;
  for (int n = 0; n < 20; ++n) {
    usleep(10'000);
    wrong += ptrace(PTRACE_SEIZE, child, nullptr, nullptr) == 0 ? 0 : 1;
    wrong += ptrace(PTRACE_INTERRUPT, child, nullptr, nullptr) == 0 ? 0 : 1;
    int status = 0;
    // A signal on its way to the child stops it, too, and has to be passed on.
    while (waitpid(child, &status, __WALL) == child && WIFSTOPPED(status) && (status >> 16) != PTRACE_EVENT_STOP) {
      ptrace(PTRACE_CONT, child, nullptr, WSTOPSIG(status));
    }
    user_regs_struct registers{};
    wrong += ptrace(PTRACE_GETREGS, child, nullptr, &registers) == 0 && registers.rip != 0 ? 0 : 1;
    wrong += ptrace(PTRACE_DETACH, child, nullptr, nullptr) == 0 ? 0 : 1;
  }
  say("wrong %d, %s", wrong, end_of(child).c_str());
  return 0;
}

/// A signal to the process group: members that handle it live on.
int signal_to_the_group(int, char**) {
  static std::atomic<int> came{0};
  handle(SIGUSR1, [](int) { ++came; });
  handle(SIGTERM, [](int) { ++came; });
  exchange(0.2);
  kill(0, SIGUSR1);
  burn(0.02);
  kill(0, SIGTERM);
  exchange(0.2);
  say("came %d", came.load());
  return 0;
}

/// Stops itself, as a shell's job does.
int stops_itself(int, char**) {
  exchange(0.2);
  raise(SIGSTOP);
  exchange(0.2);
  say("goes on");
  return 25;
}

/// Works in the foreground of a terminal until a hang-up or an interrupt there.
int at_a_terminal(int, char**) {
  static std::atomic<int> which{0};
  for (const int number : {SIGHUP, SIGINT, SIGQUIT}) {
    handle(number, [](int came) { which = came; });
  }
  const Burners burners(1);
  say("ready");
  for (int n = 0; n < 60 && which == 0; ++n) {
    burn(0.05);
  }
  std::ofstream("ending.txt") << "signal " << which << '\n';
  return 26;
}

/// Many children at a time, each with threads, one after the other.
int many(int, char**) {
  int wrong = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<pid_t> children;
    for (int n = 0; n < 8; ++n) {
      const pid_t child = fork();
      if (child == 0) {
        if (n % 2 == 0) {
          exchange(0.01);
          _exit(n);
        }
        BusyArguments arguments(n);
        execv(self, arguments.words);
        _exit(90);
      }
      children.push_back(child);
    }
    for (std::size_t n = 0; n < children.size(); ++n) {
      wrong += end_of(children[n]) == "exit " + std::to_string(n) ? 0 : 1;
    }
  }
  say("wrong %d", wrong);
  return 0;
}

/// A pipeline's writer dies when its reader has gone.
int writes_much(int, char**) {
  exchange(0.2);
  for (int n = 0; n < 1'000'000; ++n) {
    say("line %d", n);
  }
  return 0;
}

/// A program without a name: a copy of this one in memory is executed.
int executes_memory(int, char**) {
  const int source = open(self, O_RDONLY);
  const int copy = memfd_create("copy", MFD_CLOEXEC);
  struct stat status {};
  require(source >= 0 && copy >= 0 && fstat(source, &status) == 0, "memfd_create");
  for (off_t done = 0; done < status.st_size;) {
    require(sendfile(copy, source, &done, static_cast<std::size_t>(status.st_size - done)) > 0, "sendfile");
  }
  exchange(0.1);
  for (const int result : {5, 6}) {
    const pid_t child = fork();
    if (child == 0) {
      const std::string number = std::to_string(result);
      char name[] = "nobody";
      char word[] = "busy";
      char* arguments[] = {name, word, const_cast<char*>(number.c_str()), nullptr};
      fexecve(copy, arguments, environ);
      _exit(90);
    }
    say("%s", end_of(child).c_str());
  }
  return 0;
}

/// Many threads make children by vfork at once, each of which executes a program.
int vfork_storm(int, char**) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> makers;
  for (int n = 0; n < 6; ++n) {
    makers.emplace_back([&wrong] {
      for (int k = 0; k < 15; ++k) {
        char word[] = "busy";
        char number[] = "4";
        char seconds[] = "0.004";
        char* arguments[] = {self, word, number, seconds, nullptr};
        const pid_t child = vfork();
        if (child == 0) {
          execve(self, arguments, environ);
          _exit(90);
        }
        burn(0.002);
        int status = 0;
        wrong += waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 4 ? 0 : 1;
      }
    });
  }
  for (std::thread& maker : makers) {
    maker.join();
  }
  say("wrong %d", wrong.load());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"busy", busy},
                   {"ways_to_make", ways_to_make},
                   {"raw_fork_then_threads", raw_fork_then_threads},
                   {"sharing_process", sharing_process},
                   {"killed_child", killed_child},
                   {"daemonize", daemonize},
                   {"orphan", orphan},
                   {"adopts", adopts},
                   {"death_signal", death_signal},
                   {"environment", environment},
                   {"cleared_environment", cleared_environment},
                   {"inherited", inherited},
                   {"run", run},
                   {"traced", traced},
                   {"attached", attached},
                   {"signal_to_the_group", signal_to_the_group},
                   {"stops_itself", stops_itself},
                   {"at_a_terminal", at_a_terminal},
                   {"many", many},
                   {"writes_much", writes_much},
                   {"executes_memory", executes_memory},
                   {"vfork_storm", vfork_storm}},
                  argc, argv);
}
