// SPDX-License-Identifier: Apache-2.0
// Processes in namespaces of their own, with different process ids, and perhaps different files, users and clocks.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "hostile.h"

namespace {

using namespace hostile;

/// Two processes with two threads each that exchange lines in memory that they share, and say their ids.
int family(int, char**) {
  auto* line = static_cast<Line*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const auto use = [line](int word, double cpu_seconds) {
    const double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + cpu_seconds;
    for (std::uint32_t n = 1; (n & 0x1fffU) != 0 || seconds_of(CLOCK_THREAD_CPUTIME_ID) < end; ++n) {
      __atomic_store_n(&line->words[word], n, __ATOMIC_RELAXED);
    }
  };
  const pid_t own = getpid();
  const pid_t child = fork();
  std::thread other(use, child == 0 ? 0 : 1, 0.12);
  use(child == 0 ? 2 : 3, 0.12);
  other.join();
  if (child == 0) {
    say("child of its parent: %s, in the same group: %s", yes(getppid() == own), yes(getpgrp() == getpgid(own)));
    _exit(41);
  }
  say("%s", end_of(child).c_str());
  return 42;
}

/// The same, with the id: it is small in a pid namespace.
int numbered_family(int, char**) {
  say("id %d", getpid());
  return family(0, nullptr);
}

/// A process that puts its children, but not itself, into another pid namespace. It may not have new threads from then
/// on; existing ones stay.
int children_elsewhere(int, char**) {
  const Burners burners(1);
  exchange(0.15);
  require(unshare(CLONE_NEWPID) == 0, "unshare");
  const pid_t child = fork();
  if (child == 0) {
    _exit(numbered_family(0, nullptr));
  }
  burn(0.1);
  say("%s", end_of(child).c_str());
  // The namespace has ended with its first process.
  say("no more children: %s", fork() < 0 ? std::strerror(errno) : "made");
  burn(0.1);
  return 0;
}

/// A namespace that is entered by a thread of a busy process; the others stay.
int thread_elsewhere(int, char**) {
  const Burners burners(2);
  std::thread([] {
    burn(0.1);
    require(unshare(CLONE_FS | CLONE_NEWUTS) == 0, "unshare");
    require(sethostname("elsewhere", 9) == 0, "sethostname");
    burn(0.2);
    char name[65] = {};
    gethostname(name, sizeof name);
    say("here: %s", name);
  }).join();
  char name[65] = {};
  gethostname(name, sizeof name);
  say("elsewhere: %s", yes(std::strcmp(name, "elsewhere") == 0));
  return 0;
}

/// A process that changes its user namespace while it is busy (it may have one thread only then).
int user_elsewhere(int, char**) {
  exchange(0.2);
  require(unshare(CLONE_NEWUSER) == 0, "unshare");
  say("user %d", static_cast<int>(getuid()));
  exchange(0.2);
  const pid_t child = fork();
  if (child == 0) {
    exchange(0.05);
    _exit(43);
  }
  say("%s", end_of(child).c_str());
  return 0;
}

/// A new root without /proc, /sys or anything else; children are made there.
int empty_root(int, char**) {
  exchange(0.2);
  char folder[] = "root-XXXXXX";
  require(mkdtemp(folder) != nullptr && chdir(folder) == 0 && chroot(".") == 0, "chroot");
  std::thread([] { burn(0.1); }).join();
  exchange(0.1);
  const pid_t child = fork();
  if (child == 0) {
    exchange(0.1);
    _exit(44);
  }
  say("%s, /proc is there: %s", end_of(child).c_str(), yes(access("/proc", F_OK) == 0));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dispatch({{"family", family},
                   {"numbered_family", numbered_family},
                   {"children_elsewhere", children_elsewhere},
                   {"thread_elsewhere", thread_elsewhere},
                   {"user_elsewhere", user_elsewhere},
                   {"empty_root", empty_root}},
                  argc, argv);
}
