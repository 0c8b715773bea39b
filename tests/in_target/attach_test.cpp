// SPDX-License-Identifier: Apache-2.0
// The programs that are observed: this process, its forked children, and copies of this program that are started with
// an arena in their environment.
#include "collectors/in_target/session/attach.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/in_target/attach_fixture.h"

namespace crosstalk::in_target::test::attach_test {
namespace {

class Attach : public AttachFixture {};

/// Empty: it can be observed.
std::string reason() {
  const char* const why = why_not_observed(::getppid());
  return why != nullptr ? why : "";
}

TEST_F(Attach, APlainProgramIsObserved) {
  EXPECT_EQ(in_child([] { return reason().empty() ? 0 : 1; }), 0);
}

TEST_F(Attach, ATracedProgramIsNotObserved) {
  EXPECT_EQ(in_child([] {
              ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
              return reason().find("traces") != std::string::npos ? 0 : 1;
            }),
            0);
}

TEST_F(Attach, AProgramInAFilterOfItsOwnIsNotObserved) {
  const int found = in_child([] {
    sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const sock_fprog program{1, &allow};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      return 77;
    }
    return reason().find("seccomp") != std::string::npos ? 0 : 1;
  });
  if (found == 77) {
    GTEST_SKIP() << "this machine lets nobody set a seccomp filter";
  }
  EXPECT_EQ(found, 0);
}

TEST_F(Attach, AProgramThatAsksTheKernelByItselfIsNotObserved) {
  target_.direct_calls.confines = true;
  EXPECT_NE(reason().find("enters a seccomp filter"), std::string::npos);
  target_.direct_calls = {};
  target_.direct_calls.signals = true;
  EXPECT_NE(reason().find("Go program"), std::string::npos);
}

// ---- from the program's start to its exit

/// Starts this program once more, without a test to run, and with the arena in its environment. Returns its exit
/// status.
int start_again(const Arena& arena, bool traced) {
  // The leak check traces, which a traced program cannot do.
  std::vector<std::string> environment = {std::string(profile::arena_variable) + "=" + arena.name(),
                                          "ASAN_OPTIONS=detect_leaks=0"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view name(*variable);
    if (!name.starts_with("ASAN_OPTIONS=") && !name.starts_with("GTEST_")) {  // its results are not this program's
      environment.emplace_back(*variable);
    }
  }
  std::vector<char*> pointers;
  pointers.reserve(environment.size() + 1);
  for (std::string& variable : environment) {
    pointers.push_back(variable.data());
  }
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (traced) {
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    }
    ::execle("/proc/self/exe", "again", "--gtest_filter=None", nullptr, pointers.data());
    ::_exit(99);
  }
  int status = -1;
  while (::waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    ::ptrace(PTRACE_CONT, child, nullptr, nullptr);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_F(Attach, AProgramIsObservedFromItsStartToItsExit) {
  ASSERT_EQ(start_again(arena_, false), 0);
  const Records all = arena_.records(0);
  ASSERT_EQ(all.size(), 4U);
  const auto begun = of_type<profile::ThreadStart>(all, profile::RecordType::thread_start);
  const auto starts = of_type<profile::ProcessStart>(all, profile::RecordType::process_start);
  const auto ends = of_type<profile::ProcessEnd>(all, profile::RecordType::process_end);
  ASSERT_EQ(begun.size() + starts.size() + ends.size(), 3U);
  EXPECT_GT(begun[0].stack_high, begun[0].stack_low) << "the first thread's stack";
  EXPECT_EQ(begun[0].tid, starts[0].pid);
  EXPECT_EQ(starts[0].parent_pid, ::getpid());
  EXPECT_EQ(starts[0].after_fork, 0U);
  EXPECT_EQ(ends[0].exec, 0U);
  EXPECT_EQ(of_type<profile::ThreadEnd>(all, profile::RecordType::thread_end).size(), 1U);
  EXPECT_EQ(arena_.slot(0).state.load(), static_cast<std::uint32_t>(profile::SlotState::ended));
  EXPECT_TRUE(arena_.records(1).empty());
}

TEST_F(Attach, AProgramThatIsNotObservedSaysWhy) {
  ASSERT_EQ(start_again(arena_, true), 0);
  const Records all = arena_.records(0);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(of_type<profile::ProcessStart>(all, profile::RecordType::process_start).size(), 1U);
  const auto said = of_type<profile::Message>(all, profile::RecordType::message);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_STREQ(said[0].code, "not_observed");
  EXPECT_EQ(of_type<profile::ThreadEnd>(all, profile::RecordType::thread_end).size(), 1U);
}

TEST_F(Attach, AProgramThatFindsNoSessionRunsAsItWould) {
  arena_.header().state.store(static_cast<std::uint32_t>(profile::SessionState::stopping));
  EXPECT_EQ(start_again(arena_, false), 0);
  EXPECT_TRUE(arena_.records(0).empty());
}

}  // namespace
}  // namespace crosstalk::in_target::test::attach_test
