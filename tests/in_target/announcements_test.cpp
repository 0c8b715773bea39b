// SPDX-License-Identifier: Apache-2.0
// The program announces (contract/core.h) that it executes another one, and what it does for itself.
#include <gtest/gtest.h>
#include <signal.h>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/system_calls.h"
#include "tests/in_target/attach_fixture.h"

namespace crosstalk::in_target::test::announcements_test {
namespace {

class Announcements : public AttachFixture {};

TEST_F(Announcements, BeforeAnExecAllIsQuietAndAfterOneThatFailedItGoesOn) {
  observe();
  static_cast<void>(arena_.records(0));
  before_exec();
  EXPECT_TRUE(runtime().quiesced.load());
  EXPECT_EQ(target_.clocks_stopped, 1U);
  const auto ends = of_type<profile::ProcessEnd>(arena_.records(0), profile::RecordType::process_end);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].pid, ::getpid());
  EXPECT_EQ(ends[0].exec, 1U);
  exec_failed();
  EXPECT_FALSE(runtime().quiesced.load());
  EXPECT_EQ(target_.clocks_started, 1U);
  EXPECT_TRUE(arena_.records(0).empty()) << "to the recorder it is the same process";
}

TEST_F(Announcements, AfterAnExecThatFailedNothingStartsWhereWeSteppedAsideMeanwhile) {
  observe();
  before_exec();
  runtime().observing.store(false);
  exec_failed();
  EXPECT_EQ(target_.clocks_started, 0U);
}

TEST_F(Announcements, WeStepAsideFromWhatOurCallsWouldHarm) {
  observe();
  on_traced();
  on_user_dispatch();
  on_seccomp();
  EXPECT_EQ(target_.aside, (Steps{"traced", "user_dispatch", "seccomp"}));
  EXPECT_TRUE(confined());
  EXPECT_FALSE(may_make_system_calls());
}

TEST_F(Announcements, WhatAVforkChildDoesIsNotItsParents) {
  observe();
  runtime().pid = ::getpid() + 1;  // as such a child finds it
  on_traced();
  on_user_dispatch();
  on_breakpoint_wanted();
  on_own_descriptors(true);
  on_signal_taken(SIGTRAP);
  on_limit_raised();
  EXPECT_FALSE(on_signal_limit());
  EXPECT_TRUE(target_.aside.empty());
  EXPECT_EQ(target_.perf_clocks_forgone, 0U);
  on_seccomp();
  EXPECT_TRUE(target_.aside.empty());
  EXPECT_TRUE(confined()) << "what it executes is confined with it";
}

TEST_F(Announcements, WhatTheProgramNeedsItselfIsForgone) {
  observe();
  on_breakpoint_wanted();
  on_own_descriptors();  // there is no other thread
  on_own_descriptors(true);
  EXPECT_TRUE(on_signal_limit());
  on_unmap(target_.vdso_at - 4096, 4096);
  on_unmap(target_.vdso_at, 1);
  on_signal_taken(clock_signal);
  on_signal_taken(SIGTRAP);
  EXPECT_EQ(target_.aside, (Steps{"breakpoints_wanted", "own_descriptors", "signal_limit", "vdso", "clock_signal_used",
                                  "sigtrap_used"}));
  target_.timers_are_ours = false;
  EXPECT_FALSE(on_signal_limit()) << "a second try would fail, too";
}

TEST_F(Announcements, DescriptorsAreRenewedWhereTheProgramsLimitIsRaised) {
  observe();
  ThreadState& ended = *registry().add(kernel_thread_id() + 1);
  ended.phase.store(static_cast<std::uint32_t>(ThreadPhase::ending));
  on_limit_raised();
  EXPECT_EQ(target_.perf_clocks_forgone, 1U) << "of the thread that lives";
  EXPECT_EQ(target_.accesses_closed, 1U);
}

TEST_F(Announcements, AThreadThatBlocksTheTrapIsNotWatched) {
  ThreadState& self = observe();
  on_trap_blocked();
  EXPECT_TRUE(self.blocks_traps);
  EXPECT_TRUE(self.watch_tried);
}

}  // namespace
}  // namespace crosstalk::in_target::test::announcements_test
