// SPDX-License-Identifier: Apache-2.0
#include "collectors/facilities/watchpoint_trial.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "collectors/breakpoint_address.h"
#include "collectors/facilities/probe.h"
#include "collectors/facilities/probe_perf.h"
#include "collectors/facilities/surroundings.h"

namespace crosstalk::collectors {
namespace {

using profile::TrialVerdict;
using Stage = TrialFindings::Stage;

/// Returns the findings of a machine whose watchpoints report everything.
TrialFindings all_reported() {
  TrialFindings findings;
  findings.stage = Stage::tested;
  findings.store = {4, 4};
  findings.load = findings.locked = {2, 2};
  findings.other_thread = findings.signal = {6, 6};
  return findings;
}

TrialFindings nothing_reported() {
  TrialFindings findings = all_reported();
  for (TriedAccesses* tried :
       {&findings.store, &findings.load, &findings.locked, &findings.other_thread, &findings.signal}) {
    tried->reported = 0;
  }
  return findings;
}

TEST(WatchpointVerdict, AllAccessesReportedMeansThatTheyFire) {
  const profile::WatchTrial trial = judge_trial(all_reported(), {});
  EXPECT_EQ(trial.verdict, TrialVerdict::fires);
  EXPECT_EQ(trial.silent, 0U);
  EXPECT_EQ(trial.why, "");
  EXPECT_TRUE(is_worth_arming(trial));
}

TEST(WatchpointVerdict, NoneReportedMeansNever) {
  const profile::WatchTrial trial = judge_trial(nothing_reported(), {});
  EXPECT_EQ(trial.verdict, TrialVerdict::never);
  EXPECT_EQ(trial.silent, profile::trial_all);
  EXPECT_NE(trial.why, "");
  EXPECT_FALSE(is_worth_arming(trial));
}

TEST(WatchpointVerdict, KindsThatAreMissedAreNamed) {
  TrialFindings emulator = all_reported();  // it misses locked updates, whoever makes them and however they are told
  emulator.locked.reported = 0;
  emulator.other_thread.reported = emulator.signal.reported = 4;
  const profile::WatchTrial trial = judge_trial(emulator, {});
  EXPECT_EQ(trial.verdict, TrialVerdict::partly);
  EXPECT_EQ(profile::names_of_accesses(trial.silent), std::vector<std::string>{"locked_update"});
  EXPECT_NE(trial.why.find("locked updates"), std::string::npos) << trial.why;
  EXPECT_TRUE(is_worth_arming(trial));
}

TEST(WatchpointVerdict, OneOfSeveralAccessesMissedIsAKindThatIsMissed) {
  TrialFindings findings = all_reported();
  findings.store.reported = 3;
  EXPECT_EQ(judge_trial(findings, {}).silent, profile::trial_store);
}

TEST(WatchpointVerdict, WhereOtherThreadsAreNotReportedNothingIsWorthArming) {
  TrialFindings findings = all_reported();
  findings.other_thread.reported = 0;
  const profile::WatchTrial trial = judge_trial(findings, {});
  EXPECT_EQ(trial.verdict, TrialVerdict::partly);
  EXPECT_EQ(trial.silent, profile::trial_other_thread);
  EXPECT_FALSE(is_worth_arming(trial));
}

TEST(WatchpointVerdict, WithoutSignalsOnlyWhoNeedsNoneMayArm) {
  TrialFindings findings = all_reported();
  findings.signal.reported = 0;
  findings.signal_error = EINVAL;
  Probe probe;
  probe.watch_trial = judge_trial(findings, {});
  probe.watch_trial.registers = 4;
  EXPECT_EQ(probe.watch_trial.silent, profile::trial_sigtrap);
  EXPECT_NE(probe.watch_trial.why.find("sigtrap: Invalid argument"), std::string::npos) << probe.watch_trial.why;
  take_verdict(probe);
  EXPECT_TRUE(probe.watchpoints_allowed);
  EXPECT_FALSE(probe.watchpoints_inside);
}

TEST(WatchpointVerdict, WhatIsReportedOfWordsThatWereLeftAloneMakesThemUntestable) {
  TrialFindings findings = all_reported();
  findings.false_reports = 2;
  const profile::WatchTrial trial = judge_trial(findings, {});
  EXPECT_EQ(trial.verdict, TrialVerdict::untestable);
  EXPECT_FALSE(is_worth_arming(trial));
}

TEST(WatchpointVerdict, ATestThatHangsOrIsKilledIsAnAnswer) {
  TrialFindings findings = nothing_reported();
  findings.stage = Stage::signals;
  const profile::WatchTrial killed = judge_trial(findings, {0, SIGTRAP, false});
  EXPECT_EQ(killed.verdict, TrialVerdict::untestable);
  EXPECT_EQ(killed.why, "the test was killed by signal 5 while accesses were told by a signal");
  findings.stage = Stage::other_thread;
  EXPECT_EQ(judge_trial(findings, {0, 0, true}).why,
            "the test did not end while a thread accessed a word that another one watched");
  const profile::WatchTrial none = judge_trial({}, {EAGAIN, 0, false});
  EXPECT_EQ(none.verdict, TrialVerdict::untestable);
  EXPECT_NE(none.why.find("no process could be made"), std::string::npos) << none.why;
  findings = nothing_reported();
  findings.thread_error = EAGAIN;
  EXPECT_EQ(judge_trial(findings, {}).verdict, TrialVerdict::untestable);
}

TEST(WatchpointVerdict, WhatCanNotBeOpenedSaysWhy) {
  TrialFindings findings;
  findings.stage = Stage::tested;
  findings.open_error = EACCES;
  const profile::WatchTrial trial = judge_trial(findings, {});
  EXPECT_EQ(trial.verdict, TrialVerdict::not_opened);
  EXPECT_EQ(trial.why, "perf_event_open: Permission denied");
}

TEST(BlockedTrap, ThatNoneCameIsNotTakenForSafe) {
  TrialFindings findings;
  EXPECT_EQ(judge_blocked_trap(findings, {}), BlockedTrap::unknown);
  EXPECT_EQ(judge_blocked_trap(findings, {0, SIGTRAP, false}), BlockedTrap::kills);
  EXPECT_EQ(judge_blocked_trap(findings, {0, SIGSEGV, false}), BlockedTrap::unknown);
  findings.blocked_signal_waits = true;
  EXPECT_EQ(judge_blocked_trap(findings, {}), BlockedTrap::waits);
}

TEST(BlockedTrap, IsTriedByPageFaultsWhereverEventsSendSignals) {
  if (const OpenedEvent event = open_event(page_fault_attributes()); !event.fd.valid()) {
    GTEST_SKIP() << "no page fault sends a signal here: errno " << event.error;
  }
  EXPECT_NE(try_blocked_trap(), BlockedTrap::unknown);
}

/// Sets the switch that makes watchpoints dead, for as long as it lives.
class DeadWatchpoints {
 public:
  explicit DeadWatchpoints(const char* how) {
    if (const char* const before = std::getenv(dead_watchpoints_variable)) {
      before_ = before;
    }
    ::setenv(dead_watchpoints_variable, how, 1);
  }
  DeadWatchpoints(const DeadWatchpoints&) = delete;
  DeadWatchpoints& operator=(const DeadWatchpoints&) = delete;
  ~DeadWatchpoints() {
    if (before_) {
      ::setenv(dead_watchpoints_variable, before_->c_str(), 1);
    } else {
      ::unsetenv(dead_watchpoints_variable);
    }
  }

 private:
  std::optional<std::string> before_;
};

TEST(WatchpointTrial, GivesOneAnswerEachTime) {
  const TrialOutcome first = try_watchpoints();
  EXPECT_NE(first.trial.verdict, TrialVerdict::unknown);
  EXPECT_NE(first.trial.verdict, TrialVerdict::untestable) << first.trial.why;
  EXPECT_EQ(first.trial.verdict == TrialVerdict::not_opened, first.open_error != 0);
  for (int again = 0; again < 5; ++again) {
    const TrialOutcome next = try_watchpoints();
    EXPECT_EQ(next.trial.verdict, first.trial.verdict) << next.trial.why;
    EXPECT_EQ(next.trial.silent, first.trial.silent);
  }
}

TEST(WatchpointTrial, DeadWatchpointsNeverFire) {
  if (try_watchpoints().trial.verdict == TrialVerdict::not_opened) {
    GTEST_SKIP() << "watchpoints cannot be opened here";
  }
  const DeadWatchpoints dead("1");
  EXPECT_EQ(try_watchpoints().trial.verdict, TrialVerdict::never);
  EXPECT_TRUE(watchpoints_led_astray());
}

TEST(WatchpointTrial, ThoseThatDieLaterPassTheTest) {
  const TrialVerdict verdict = try_watchpoints().trial.verdict;
  const DeadWatchpoints dead("later");
  EXPECT_EQ(try_watchpoints().trial.verdict, verdict);
  EXPECT_TRUE(watchpoints_led_astray());
}

TEST(WatchpointTrial, ATooShortLimitIsAnAnswer) {
  const TrialOutcome outcome = try_watchpoints(0);
  if (outcome.trial.verdict == TrialVerdict::untestable) {  // unless it was quicker
    EXPECT_TRUE(outcome.trial.why.starts_with("the test did not end")) << outcome.trial.why;
  }
  EXPECT_NE(try_watchpoints().trial.verdict, TrialVerdict::untestable) << "nothing is left of it";
}

TEST(BreakpointAddress, LeadsDeadOnesToPageZeroAsAlignedAsTheyWere) {
  EXPECT_EQ(breakpoint_address(0x7f0000001238, false), 0x7f0000001238U);
  EXPECT_EQ(breakpoint_address(0x7f0000001238, true), 0x38U);
}

TEST(Doubt, SignalsThatStayAwayWhileCostsAreMeasuredCorrectTheVerdict) {
  Probe probe;
  probe.watch_trial = judge_trial(all_reported(), {});
  probe.watch_trial.registers = 4;
  take_verdict(probe);
  doubt_signals(50, 100, probe);
  doubt_signals(0, 0, probe);  // nothing was measured
  EXPECT_EQ(probe.watch_trial.verdict, TrialVerdict::fires);
  doubt_signals(50, 0, probe);
  EXPECT_EQ(probe.watch_trial.verdict, TrialVerdict::partly);
  EXPECT_FALSE(probe.watchpoints_inside);
  EXPECT_TRUE(probe.watchpoints_allowed) << "an observer outside is told without signals";
}

TEST(Surroundings, NameWhatMayKeepDebugExceptions) {
  EXPECT_EQ(hypervisor_of("KVMKVMKVM"), "KVM");
  EXPECT_EQ(hypervisor_of("Microsoft Hv"), "Hyper-V");
  EXPECT_EQ(hypervisor_of("SomethingNew"), "'SomethingNew'");
  EXPECT_EQ(hypervisor_of("unknown"), "an unknown hypervisor");
  EXPECT_EQ(hypervisor_of(""), "");
  EXPECT_EQ(sandbox_of("Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"), "gVisor");
  EXPECT_EQ(sandbox_of("Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)"), "WSL1");
  EXPECT_EQ(sandbox_of("Linux version 5.15.90.1-microsoft-standard-WSL2 (oe-user@oe-host)"), "");
  EXPECT_EQ(sandbox_of("Linux version 6.1.0-13-amd64 (debian-kernel@lists.debian.org)"), "");
}

TEST(Surroundings, SayTheCauseAndWhatToDo) {
  Surroundings around;
  EXPECT_EQ(cause_of_silence(around, Silence::whole), "") << "of a bare machine none is known";
  EXPECT_EQ(remedy_of_silence(around), "");
  around.hypervisor = "KVM";
  around.product = "Google Compute Engine";
  around.confidential = "AMD SEV-SNP";
  EXPECT_EQ(
      cause_of_silence(around, Silence::whole),
      "this is a virtual machine (CPUID names KVM, firmware Google Compute Engine, AMD SEV-SNP), whose host keeps "
      "debug exceptions to itself");
  EXPECT_NE(cause_of_silence(around, Silence::in_part).find("does not pass all debug exceptions on"),
            std::string::npos);
  EXPECT_NE(remedy_of_silence(around), "");
  around.sandbox = "gVisor";
  EXPECT_NE(cause_of_silence(around, Silence::whole).find("gVisor's"), std::string::npos);
  EXPECT_NE(remedy_of_silence(around).find("runc"), std::string::npos);
}

TEST(AccessesInWords, AreListed) {
  EXPECT_EQ(profile::accesses_in_words(profile::trial_store), "stores");
  EXPECT_EQ(profile::accesses_in_words(profile::trial_load | profile::trial_locked), "loads and locked updates");
  EXPECT_EQ(profile::accesses_in_words(7), "stores, loads and locked updates");
  EXPECT_EQ(profile::names_of_accesses(profile::trial_all).size(), 5U);
}

}  // namespace
}  // namespace crosstalk::collectors
