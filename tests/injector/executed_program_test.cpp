// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/executed_program.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace crosstalk::injector {
namespace {

/// A child that waits for a line, and then does as it says: executes another program.
class Child {
 public:
  Child() {
    int ends[2] = {};
    if (::pipe(static_cast<int*>(ends)) != 0) {
      std::abort();
    }
    pid_ = ::fork();
    if (pid_ == 0) {
      char byte = 0;
      ::close(ends[1]);
      if (::read(ends[0], &byte, 1) == 1) {
        ::execl("/bin/sleep", "sleep", "60", nullptr);
      }
      ::_exit(0);
    }
    ::close(ends[0]);
    line_ = ends[1];
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::close(line_);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  void execute() const { ASSERT_EQ(::write(line_, "x", 1), 1); }

 private:
  pid_t pid_ = 0;
  int line_ = -1;
};

TEST(ExecutedProgram, OneThatGoesOn) {
  const Child child;
  EXPECT_EQ(ExecutedProgram(child.pid()).what_became_of_it(), "");
}

TEST(ExecutedProgram, OneThatEnds) {
  const Child child;
  const ExecutedProgram program(child.pid());
  ::kill(child.pid(), SIGKILL);
  siginfo_t end{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &end, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(program.what_became_of_it(), "it has ended");
}

TEST(ExecutedProgram, OneThatExecutesAnother) {
  const Child child;
  const ExecutedProgram program(child.pid());
  child.execute();
  std::string became;
  for (int look = 0; look < 2000 && became.empty(); ++look, ::usleep(1000)) {
    became = program.what_became_of_it();
  }
  EXPECT_EQ(became, "it has executed another program meanwhile");
}

}  // namespace
}  // namespace crosstalk::injector
