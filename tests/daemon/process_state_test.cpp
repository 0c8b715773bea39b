// SPDX-License-Identifier: Apache-2.0
#include "daemon/process_state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace crosstalk::daemon::process_state_test {
namespace {

TEST(ProcessState, SaysWhoseChildAProcessIs) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const std::optional<ProcessState> state = read_process_state(open_process_state(child));
  ASSERT_TRUE(state);
  EXPECT_EQ(state->parent, ::getpid());
  EXPECT_TRUE(descends_from(child, ::getpid()));
  EXPECT_TRUE(descends_from(child, ::getppid()));
  EXPECT_TRUE(descends_from(child, child));
  EXPECT_FALSE(descends_from(::getpid(), child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(read_process_state(open_process_state(child)));
  EXPECT_FALSE(descends_from(child, ::getpid()));
}

/// A process that stops with its child, as the recorder does with the command, and exits with the child's status.
class StopWith : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    parent_ = ::fork();
    if (parent_ == 0) {
      const pid_t command = ::fork();
      if (command == 0) {
        ::raise(SIGSTOP);
        ::_exit(7);
      }
      int status = 0;
      ::waitpid(command, &status, WUNTRACED);
      (void)!::write(ends[1], &command, sizeof command);
      stop_with(command, SIGSTOP);
      ::waitpid(command, &status, 0);
      ::_exit(WEXITSTATUS(status));
    }
    ASSERT_EQ(::read(ends[0], &command_, sizeof command_), static_cast<ssize_t>(sizeof command_));
    ::close(ends[0]);
    ::close(ends[1]);
    int status = 0;
    ASSERT_EQ(::waitpid(parent_, &status, WUNTRACED), parent_);
    ASSERT_TRUE(WIFSTOPPED(status));
    EXPECT_EQ(WSTOPSIG(status), SIGSTOP);
  }

  void expect_end() const {
    int status = 0;
    ASSERT_EQ(::waitpid(parent_, &status, 0), parent_);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 7);
  }

  pid_t parent_ = -1;
  pid_t command_ = -1;
};

TEST_F(StopWith, GoesOnWithTheCommand) {
  ::kill(command_, SIGCONT);
  expect_end();
}

TEST_F(StopWith, TheCommandGoesOnWithIt) {
  ::kill(parent_, SIGCONT);
  expect_end();
}

TEST_F(StopWith, NothingIsStoppedForACommandThatGoesOn) {
  stop_with(::getppid(), SIGSTOP);
  ::kill(parent_, SIGCONT);
  expect_end();
}

}  // namespace
}  // namespace crosstalk::daemon::process_state_test
