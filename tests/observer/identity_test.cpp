// SPDX-License-Identifier: Apache-2.0
// A process is the one that was meant, by its user and by a pidfd.
#include "collectors/observer/identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/unique_fd.h"

namespace crosstalk::observer::identity_test {
namespace {

/// A child that sleeps. `readable`: by its own user.
class Sleeper {
 public:
  explicit Sleeper(bool readable = true) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_DUMPABLE, readable ? 1 : 0);
      ::close(ready[0]);
      ::close(ready[1]);
      ::pause();
      ::_exit(0);
    }
    ::close(ready[1]);
    char none = 0;
    EXPECT_EQ(::read(ready[0], &none, 1), 0);  // it is ready once it has closed its end
    ::close(ready[0]);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() { end(); }
  void end() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      pid_ = 0;
    }
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] UniqueFd descriptor() const { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))); }

 private:
  pid_t pid_ = 0;
};

std::string refusal(const Result<void>& checked) { return checked ? std::string() : checked.error().message; }

TEST(Identity, AProcessBelongsToItsUser) {
  const Sleeper child;
  EXPECT_EQ(refusal(check_owner(child.pid(), ::geteuid())), "");
  const uid_t other = ::geteuid() + 1;
  EXPECT_EQ(refusal(check_owner(child.pid(), other)), "it belongs to user " + std::to_string(::geteuid()) +
                                                          " and not to user " + std::to_string(other) + " (--owner)");
  EXPECT_EQ(check_owner(INT32_MAX, 0).error().code, ErrorCode::not_found);
}

TEST(Identity, AnUnreadableProcessBelongsToRoot) {
  const Sleeper child(false);
  EXPECT_EQ(refusal(check_owner(child.pid(), 0)), "");
  if (::geteuid() != 0) {
    EXPECT_NE(refusal(check_owner(child.pid(), ::geteuid())), "");
  }
}

TEST(Identity, APidfdProvesThatAProcessLives) {
  Sleeper child;
  const Sleeper other;
  const pid_t pid = child.pid();
  const UniqueFd descriptor = child.descriptor();
  EXPECT_EQ(refusal(check_pidfd(pid, descriptor.get())), "");
  EXPECT_NE(refusal(check_pidfd(other.pid(), descriptor.get())).find("is of process " + std::to_string(pid)),
            std::string::npos);
  child.end();
  EXPECT_EQ(refusal(check_pidfd(pid, descriptor.get())), "process " + std::to_string(pid) + " has ended meanwhile");
}

TEST(Identity, WhatIsNoPidfdProvesNothing) {
  const UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_NE(refusal(check_pidfd(::getpid(), file.get())).find("is no pidfd"), std::string::npos);
  EXPECT_NE(refusal(check_pidfd(::getpid(), 100'000)).find("is no pidfd"), std::string::npos);
}

}  // namespace
}  // namespace crosstalk::observer::identity_test
