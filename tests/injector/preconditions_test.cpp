// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/preconditions.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace crosstalk::injector::preconditions_test {
namespace {

/// A child that waits, of a program that can be injected into.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ == 0) {
      ::execl("/bin/sleep", "sleep", "60", nullptr);
      ::_exit(127);
    }
    ::usleep(200'000);
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

/// Any file that both see serves as the library.
std::string message_of(pid_t pid, const std::string& library = "/bin/sleep") {
  const auto checked = check_injectable(pid, library);
  return checked ? std::string() : checked.error().message;
}

TEST(Preconditions, AnOrdinaryProgram) {
  const Sleeper sleeper;
  EXPECT_EQ(message_of(sleeper.pid()), "");
}

TEST(Preconditions, ALibraryThatItDoesNotSee) {
  const Sleeper sleeper;
  EXPECT_NE(message_of(sleeper.pid(), "/no/such/libcrosstalk.so"), "");
}

TEST(Preconditions, ATracedProcess) {
  const Sleeper sleeper;
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, sleeper.pid(), nullptr, nullptr), 0);
  const std::string message = message_of(sleeper.pid());
  EXPECT_NE(message.find("process " + std::to_string(::getpid()) + " traces it"), std::string::npos) << message;
  ::ptrace(PTRACE_INTERRUPT, sleeper.pid(), nullptr, nullptr);
  ::waitpid(sleeper.pid(), nullptr, 0);
  ::ptrace(PTRACE_DETACH, sleeper.pid(), nullptr, nullptr);
}

TEST(Preconditions, AStoppedProcess) {
  const Sleeper sleeper;
  ::kill(sleeper.pid(), SIGSTOP);
  ::usleep(100'000);
  EXPECT_NE(message_of(sleeper.pid()).find("it is stopped"), std::string::npos);
}

TEST(Preconditions, ThereIsNoSuchProcess) { EXPECT_NE(message_of(INT32_MAX).find("no process"), std::string::npos); }

}  // namespace
}  // namespace crosstalk::injector::preconditions_test
