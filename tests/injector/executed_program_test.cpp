// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/executed_program.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace crosstalk::injector::executed_program_test {
namespace {

/// A child that waits for a line and then executes the named program.
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

/// A shell that executes itself at each received line, at the same addresses each time, and reports its start.
class Repeated {
 public:
  Repeated() {
    int lines[2] = {};
    int answers[2] = {};
    if (::pipe(static_cast<int*>(lines)) != 0 || ::pipe(static_cast<int*>(answers)) != 0) {
      std::abort();
    }
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(lines[0], 0);
      ::dup2(answers[1], 1);
      ::close(lines[1]);
      ::setenv("AGAIN", "echo; read line && exec sh -c \"$AGAIN\"", 1);
      ::personality(ADDR_NO_RANDOMIZE);
      ::execl("/bin/sh", "sh", "-c", ::getenv("AGAIN"), nullptr);
      ::_exit(0);
    }
    ::close(lines[0]);
    ::close(answers[1]);
    line_ = lines[1];
    answer_ = answers[0];
    await();
  }
  ~Repeated() {
    ::close(line_);
    ::close(answer_);
    ::waitpid(pid_, nullptr, 0);
  }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  void execute() const {
    ASSERT_EQ(::write(line_, "\n", 1), 1);
    await();
  }
  [[nodiscard]] std::string told_at_its_start() const {
    std::ifstream in("/proc/" + std::to_string(pid_) + "/auxv", std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

 private:
  void await() const {
    char byte = 0;
    ASSERT_EQ(::read(answer_, &byte, 1), 1);
  }

  pid_t pid_ = 0;
  int line_ = -1;
  int answer_ = -1;
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

TEST(ExecutedProgram, OneThatExecutesItselfAtTheSameAddresses) {
  const Repeated shell;
  shell.execute();  // from now on with the environment that it gives itself
  const ExecutedProgram program(shell.pid());
  const std::string told = shell.told_at_its_start();
  EXPECT_EQ(program.what_became_of_it(), "");
  shell.execute();
  if (shell.told_at_its_start() != told) {
    GTEST_SKIP() << "addresses stay randomised: personality(2) is refused";
  }
  EXPECT_EQ(program.what_became_of_it(), "it has executed another program meanwhile");
}

}  // namespace
}  // namespace crosstalk::injector::executed_program_test
