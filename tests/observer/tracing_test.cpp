// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/tracing.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace crosstalk::observer::tracing_test {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

/// A child that waits, and that the test may trace.
class Traceable {
 public:
  Traceable() : pid_(::fork()) {
    if (pid_ == 0) {
      ::pause();
      ::_exit(0);
    }
  }
  Traceable(const Traceable&) = delete;
  Traceable& operator=(const Traceable&) = delete;
  ~Traceable() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool seize() const { return ::ptrace(PTRACE_SEIZE, pid_, nullptr, nullptr) == 0; }
  [[nodiscard]] bool let_go() const {
    return ::ptrace(PTRACE_INTERRUPT, pid_, nullptr, nullptr) == 0 && ::waitpid(pid_, nullptr, 0) == pid_ &&
           ::ptrace(PTRACE_DETACH, pid_, nullptr, nullptr) == 0;
  }

 private:
  pid_t pid_;
};

TEST(Tracing, ATracerThatComesAndGoes) {
  const Traceable child;
  Tracing tracing(child.pid());
  EXPECT_FALSE(tracing.is_traced(second));
  EXPECT_EQ(tracing.tracer(), "");
  ASSERT_TRUE(child.seize());
  EXPECT_FALSE(tracing.is_traced(second + 1)) << "the kernel is not asked each time";
  EXPECT_TRUE(tracing.is_traced(2 * second));
  EXPECT_NE(tracing.tracer().find("(process " + std::to_string(::getpid()) + ")"), std::string::npos);
  ASSERT_TRUE(child.let_go());
  EXPECT_TRUE(tracing.is_traced(2 * second + 1));
  EXPECT_FALSE(tracing.is_traced(3 * second));
  EXPECT_NE(tracing.tracer(), "") << "there was one";
}

TEST(Tracing, AProcessThatIsGoneIsNotTraced) { EXPECT_FALSE(Tracing(INT32_MAX).is_traced(second)); }

TEST(Tracing, WhoTracesAnotherThreadIsNoted) {
  Tracing tracing(::getpid());
  tracing.note(0);
  EXPECT_EQ(tracing.tracer(), "");
  tracing.note(INT32_MAX);  // gone by now
  EXPECT_EQ(tracing.tracer(), "a tracer (process 2147483647)");
}

}  // namespace
}  // namespace crosstalk::observer::tracing_test
