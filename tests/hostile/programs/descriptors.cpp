// SPDX-License-Identifier: Apache-2.0
// Descriptors: as many as the limit allows, lowest numbers first, only those that the program has opened, and all that
// it closes are closed.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "hostile.h"

namespace {

using namespace hostile;

rlim_t soft_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

/// Returns descriptors below the soft limit: higher ones do not count against it, and a program cannot open there.
std::vector<int> open_descriptors() {
  std::vector<int> found;
  DIR* folder = opendir("/proc/self/fd");
  require(folder != nullptr, "/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != dirfd(folder) && static_cast<rlim_t>(fd) < soft_limit()) {
      found.push_back(fd);
    }
  }
  closedir(folder);
  std::sort(found.begin(), found.end());
  return found;
}

std::string listed(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) {
    text += " " + std::to_string(number);
  }
  return text;
}

/// Eighty threads, and sockets up to the limit, hard and soft.
int up_to_the_limit(int, char** argv) {
  const auto wanted = static_cast<rlim_t>(std::stoi(argv[0]));
  const int threads = std::stoi(argv[1]);
  const rlimit limit{wanted, wanted};
  require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
  std::atomic<bool> over{false};
  std::vector<std::thread> crew;
  for (int n = 0; n < threads; ++n) {
    crew.emplace_back([&] {
      burn(0.004);
      while (!over) {
        usleep(10'000);
      }
    });
  }
  exchange(0.15);
  int opened = 0;
  while (socket(AF_UNIX, SOCK_STREAM, 0) >= 0) {
    ++opened;
  }
  say("%d sockets, then %s", opened, std::strerror(errno));
  over = true;
  for (std::thread& thread : crew) {
    thread.join();
  }
  return 0;
}

/// The same limit, as a shell has set it before the program was started.
int inherited_limit(int, char**) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  say("limits %llu %llu", static_cast<unsigned long long>(limit.rlim_cur),
      static_cast<unsigned long long>(limit.rlim_max));
  const Burners burners(3);
  exchange(0.15);
  int opened = 0;
  while (open("/dev/null", O_RDONLY) >= 0) {
    ++opened;
  }
  say("%d opened, then %s", opened, std::strerror(errno));
  return 0;
}

int listing(int, char**) {
  say("at start%s", listed(open_descriptors()).c_str());
  exchange(0.3);
  say("later%s", listed(open_descriptors()).c_str());
  const int fd = open("/dev/null", O_RDONLY);
  say("next %d", fd);
  const pid_t child = fork();
  if (child == 0) {
    burn(0.1);
    say("in a child%s", listed(open_descriptors()).c_str());
    execl("/bin/ls", "ls", "/proc/self/fd", nullptr);
    _exit(90);
  }
  say("%s", end_of(child).c_str());
  return 0;
}

/// Closes all descriptors that it finds, in one of the ways of daemons, and works on.
int close_all(int, char** argv) {
  const std::string way = argv[0];
  const Burners burners(1);
  exchange(0.1);
  if (way == "loop") {
    for (int fd = 3; fd < 70'000; ++fd) {
      close(fd);
    }
  } else if (way == "listing") {
    for (const int fd : open_descriptors()) {
      if (fd > 2) {
        close(fd);
      }
    }
  } else if (way == "closefrom") {
    closefrom(3);
  } else if (way == "close_range") {
    require(close_range(3, ~0U, 0) == 0, "close_range");
  } else if (way == "close_range_by_syscall") {
    require(syscall(SYS_close_range, 3U, ~0U, 0U) == 0, "close_range");
  } else if (way == "unshare") {
    require(close_range(3, ~0U, CLOSE_RANGE_UNSHARE) == 0, "close_range");
  } else if (way == "on_exec") {
    require(close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0, "close_range");
  }
  exchange(0.1);
  say("open%s, next %d", listed(open_descriptors()).c_str(), open("/dev/null", O_RDONLY));
  std::thread([] { burn(0.05); }).join();
  return 0;
}

/// Files at numbers of the program's own choice, the highest ones included.
int chosen_numbers(int, char**) {
  const Burners burners(2);
  exchange(0.15);
  const int fd = open("/dev/zero", O_RDONLY);
  const int highest = static_cast<int>(soft_limit()) - 1;
  int wrong = 0;
  for (int n = 0; n < 40; ++n) {
    const int wanted = n < 30 ? highest - n : 100 * n;
    wrong += dup2(fd, wanted) == wanted ? 0 : 1;
    burn(0.004);
  }
  for (int n = 0; n < 40; ++n) {
    const int number = n < 30 ? highest - n : 100 * n;
    char byte = 1;
    wrong += read(number, &byte, 1) == 1 && byte == 0 ? 0 : 1;
    wrong += close(number) == 0 ? 0 : 1;
  }
  say("wrong %d, one above the limit: %s", wrong, dup2(fd, highest + 1) < 0 ? std::strerror(errno) : "taken");
  return 0;
}

/// Limits that are lowered, and raised, while threads come and go: only the observation of new threads may change.
int moving_limit(int, char**) {
  rlimit first{};
  getrlimit(RLIMIT_NOFILE, &first);
  int wrong = 0;
  for (int n = 0; n < 20; ++n) {
    const rlimit limit{static_cast<rlim_t>(n % 2 == 0 ? 4 : 64), first.rlim_max};
    wrong += setrlimit(RLIMIT_NOFILE, &limit) == 0 ? 0 : 1;
    std::thread([] { burn(0.01); }).join();
    exchange(0.01);
    rlimit seen{};
    getrlimit(RLIMIT_NOFILE, &seen);
    wrong += seen.rlim_cur == limit.rlim_cur && seen.rlim_max == limit.rlim_max ? 0 : 1;
  }
  say("wrong %d, next %d", wrong, open("/dev/null", O_RDONLY));
  return 0;
}

/// The limit is raised, as servers do; files beyond the first one get the numbers that follow.
int raised_limit(int, char**) {
  const Burners burners(2);
  exchange(0.2);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 4096;
  require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
  exchange(0.2);
  say("open%s", listed(open_descriptors()).c_str());
  int last = open("/dev/null", O_RDONLY);
  int jumps = 0;
  for (int n = 0; n < 2000; ++n) {
    const int fd = open("/dev/null", O_RDONLY);
    jumps += fd > 1000 && fd != last + 1 ? 1 : 0;
    last = fd;
  }
  say("%d jumps", jumps);
  return 0;
}

/// The same in a process that exchanges a line with another one.
int raised_limit_of_a_partner(int, char**) {
  auto* line = static_cast<Line*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const auto use = [line](int word, double cpu_seconds) {
    const double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + cpu_seconds;
    for (std::uint32_t n = 1; (n & 0x1fffU) != 0 || seconds_of(CLOCK_THREAD_CPUTIME_ID) < end; ++n) {
      __atomic_store_n(&line->words[word], n, __ATOMIC_RELAXED);
    }
  };
  const pid_t child = fork();
  if (child == 0) {
    use(1, 20);
    _exit(0);
  }
  use(0, 0.4);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 4096;
  require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
  int strangers = 0;
  for (int n = 0; n < 20; ++n) {
    strangers += open_descriptors().size() == 3 ? 0 : 1;
    use(0, 0.01);
  }
  kill(child, SIGKILL);
  say("strangers %d times; %s", strangers, end_of(child).c_str());
  return 0;
}

/// Limits, read from another thread all the time, never change.
int limit_as_seen(int, char**) {
  rlimit first{};
  getrlimit(RLIMIT_NOFILE, &first);
  const Burners burners(1);
  std::atomic<int> changes{0};
  std::atomic<bool> over{false};
  std::thread watcher([&] {
    while (!over) {
      rlimit seen{};
      getrlimit(RLIMIT_NOFILE, &seen);
      changes += seen.rlim_cur == first.rlim_cur && seen.rlim_max == first.rlim_max ? 0 : 1;
    }
  });
  for (int n = 0; n < 80; ++n) {
    std::thread([] { burn(0.002); }).join();
  }
  over = true;
  watcher.join();
  say("limits changed %d times", changes.load());
  return 0;
}

/// Standard streams are closed: the next opened files get their numbers.
int without_streams(int, char**) {
  const int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 50);
  close(0);
  close(1);
  close(2);
  exchange(0.2);
  const int first = open("/dev/null", O_RDWR);
  const int second = open("/dev/null", O_RDWR);
  const int third = open("/dev/null", O_RDWR);
  std::thread([] { burn(0.1); }).join();
  dprintf(out, "%d %d %d\n", first, second, third);
  return 0;
}

/// Standard streams were closed before the program began: its first files get their numbers, which the status tells.
int closed_at_start(int, char**) {
  const int first = open("/dev/null", O_RDWR);
  exchange(0.2);
  const int second = open("/dev/null", O_RDWR);
  std::thread([] { burn(0.1); }).join();
  const int third = open("/dev/null", O_RDWR);
  return 100 * first + 10 * second + third;
}

/// Nothing more can be opened, no process made, no file written: as servers confine processes that handle foreign
/// input.
int limits_of_zero(int, char**) {
  const Burners burners(1);
  exchange(0.15);
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_FSIZE}) {
    const rlimit none{0, 0};
    require(setrlimit(resource, &none) == 0, "setrlimit");
  }
  burn(0.2);
  say("open: %s", open("/dev/null", O_RDONLY) < 0 ? std::strerror(errno) : "done");
  return 0;
}

/// select() works with all open descriptors: none is numbered beyond FD_SETSIZE.
int selectable(int, char**) {
  exchange(0.3);
  int ends[2];
  require(pipe(ends) == 0, "pipe");
  say("pipe %d %d", ends[0], ends[1]);
  fd_set ready;
  FD_ZERO(&ready);
  FD_SET(ends[1], &ready);
  say("select %d", select(ends[1] + 1, nullptr, &ready, nullptr, nullptr));
  return 0;
}

/// posix_spawn, and fork and exec, pass on the intended descriptors only.
int passed_on(int, char**) {
  const Burners burners(2);
  exchange(0.15);
  const int kept = open("/dev/null", O_RDONLY);
  const int closed = open("/dev/null", O_RDONLY | O_CLOEXEC);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, kept, 9);
  char name[] = "ls";
  char what[] = "/proc/self/fd";
  char* arguments[] = {name, what, nullptr};
  pid_t child = 0;
  require(posix_spawn(&child, "/bin/ls", &actions, nullptr, arguments, environ) == 0, "posix_spawn");
  say("%s, opened %d %d", end_of(child).c_str(), kept, closed);
  FILE* pipe = popen("ls /proc/self/fd", "r");
  char line[64];
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    say("popen: %.*s", static_cast<int>(std::strcspn(line, "\n")), line);
  }
  say("%s", ending(pclose(pipe)).c_str());
  return 0;
}

/// Opens and closes a file for so long, beside threads that stay and others that come and go. Counts differences to a
/// process in which nothing else opens files.
struct Opened {
  long times = 0, other_number = 0, refused = 0;
};
Opened open_often(double seconds, bool come_and_go) {
  const Burners burners(2);
  std::atomic<bool> over{false};
  std::thread maker([&] {
    while (!over) {
      come_and_go ? std::thread([] { burn(0.002); }).join() : burn(0.002);
    }
  });
  int lowest = INT_MAX;
  for (int n = 0; n < 100; ++n) {
    const int fd = open("/dev/null", O_RDONLY);
    lowest = fd < 0 ? lowest : std::min(fd, lowest);
    close(fd);
  }
  Opened seen;
  for (const double end = now() + seconds; now() < end; ++seen.times) {
    const int fd = open("/dev/null", O_RDONLY);
    seen.refused += fd < 0 ? 1 : 0;
    seen.other_number += fd >= 0 && fd != lowest ? 1 : 0;
    close(fd);
  }
  over = true;
  maker.join();
  return seen;
}

/// Counts numbers that differ from the program's expectation. For figures, not for the catalogue: some do.
int open_and_count(int argc, char** argv) {
  const Opened seen = open_often(argc > 1 ? std::stod(argv[1]) : 1, std::string(argv[0]) == "come_and_go");
  say("of %ld opens %ld got another number, %ld failed", seen.times, seen.other_number, seen.refused);
  return 0;
}

/// Few numbers are left: a number that is taken for a moment is noticed.
int short_of_numbers(int, char** argv) {
  exchange(0.2);
  const int wanted = std::stoi(argv[0]);
  std::vector<int> files;
  for (int fd = 0; fd >= 0;) {
    files.push_back(fd = open("/dev/null", O_RDONLY));
  }
  files.pop_back();
  for (int n = 0; n < wanted; ++n) {
    close(files.back());
    files.pop_back();
  }
  const Opened seen = open_often(1, true);
  say("%ld got another number, %ld failed", seen.other_number, seen.refused);
  return 0;
}

/// One thread has descriptors of its own, with the same numbers as those of the others.
int own_table(int, char**) {
  const Burners burners(2);
  exchange(0.1);
  int wrong = 0;
  std::thread([&wrong] {
    require(unshare(CLONE_FILES) == 0, "unshare");
    for (int n = 0; n < 40; ++n) {
      int ends[2];
      char byte = 'x';
      require(pipe(ends) == 0, "pipe");
      burn(0.005);
      wrong += write(ends[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1 ? 0 : 1;
      wrong += close(ends[0]) == 0 && close(ends[1]) == 0 ? 0 : 1;
    }
    wrong += static_cast<int>(open_descriptors().size());
  }).join();
  exchange(0.1);
  say("wrong and open %d, outside%s", wrong, listed(open_descriptors()).c_str());
  return 0;
}

/// Prints nothing; ends with 0 if the soft limit is the given one.
int has_limit(int, char** argv) { return soft_limit() == std::stoul(argv[0]) ? 0 : 1; }

/// vfork is called in a frame of its own: the child writes into it.
[[gnu::noinline]] pid_t executed_by_vfork(char** arguments) {
  const pid_t child = vfork();
  if (child == 0) {
    execv(arguments[0], arguments);
    _exit(9);
  }
  return child;
}

/// Children by all ways have the limit that they should, while threads come and go.
int limit_of_children(int, char**) {
  const std::string wanted = std::to_string(soft_limit());
  std::atomic<bool> over{false};
  std::thread maker([&] {
    while (!over) {
      std::thread([] { burn(0.002); }).join();
    }
  });
  char self[] = "/proc/self/exe";
  char word[] = "has_limit";
  char* arguments[] = {self, word, const_cast<char*>(wanted.c_str()), nullptr};
  const std::string shell = "test $(ulimit -S -n) = " + wanted;
  int wrong = 0;
  const auto wait_for = [&wrong](pid_t child) {
    int status = -1;
    wrong += waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
  };
  for (int n = 0; n < 40; ++n) {
    wait_for(executed_by_vfork(arguments));
    pid_t child = _Fork();
    if (child == 0) {
      _exit(soft_limit() == std::stoul(wanted) ? 0 : 9);
    }
    wait_for(child);
    child = static_cast<pid_t>(syscall(SYS_fork));
    if (child == 0) {
      execv(self, arguments);
      _exit(9);
    }
    wait_for(child);
    require(posix_spawn(&child, self, nullptr, nullptr, arguments, environ) == 0, "posix_spawn");
    wait_for(child);
    wrong += std::system(shell.c_str()) == 0 ? 0 : 1;
  }
  over = true;
  maker.join();
  say("wrong %d", wrong);
  return 0;
}

int list(int, char**) {
  say("open%s", listed(open_descriptors()).c_str());
  return 0;
}

/// The child's program finds the descriptors that the actions have made, and no other.
int spawn_actions(int, char**) {
  const Burners burners(2);
  exchange(0.15);
  const int extra = open("/dev/null", O_RDONLY);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 20, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, extra, 3);
  posix_spawn_file_actions_addclose(&actions, 20);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, 4);
  char self[] = "/proc/self/exe";
  char word[] = "list";
  char* arguments[] = {self, word, nullptr};
  for (int n = 0; n < 20; ++n) {
    pid_t child = 0;
    require(posix_spawn(&child, self, &actions, nullptr, arguments, environ) == 0, "posix_spawn");
    say("%s", end_of(child).c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"up_to_the_limit", up_to_the_limit},
                   {"inherited_limit", inherited_limit},
                   {"listing", listing},
                   {"close_all", close_all},
                   {"chosen_numbers", chosen_numbers},
                   {"moving_limit", moving_limit},
                   {"raised_limit", raised_limit},
                   {"raised_limit_of_a_partner", raised_limit_of_a_partner},
                   {"limit_as_seen", limit_as_seen},
                   {"without_streams", without_streams},
                   {"closed_at_start", closed_at_start},
                   {"limits_of_zero", limits_of_zero},
                   {"selectable", selectable},
                   {"passed_on", passed_on},
                   {"open_and_count", open_and_count},
                   {"short_of_numbers", short_of_numbers},
                   {"own_table", own_table},
                   {"has_limit", has_limit},
                   {"limit_of_children", limit_of_children},
                   {"list", list},
                   {"spawn_actions", spawn_actions}},
                  argc, argv);
}
