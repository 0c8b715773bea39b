// SPDX-License-Identifier: Apache-2.0
#include "driver/recording/machine_limits.h"

#include <gtest/gtest.h>

namespace crosstalk::driver {
namespace {

using profile::TrialVerdict;

collectors::Probe probe_with(TrialVerdict verdict, std::uint32_t silent = 0, std::uint32_t registers = 4) {
  collectors::Probe probe;
  probe.perf_allowed = true;
  probe.watch_trial = {verdict, silent, registers, "the cause", "the remedy"};
  collectors::take_verdict(probe);
  probe.facilities = {{"perf task-clock", true, "allowed", ""}, collectors::watchpoint_facility(probe.watch_trial)};
  return probe;
}

std::vector<profile::MessageRow> limits(const collectors::Probe& probe, bool from_outside = false) {
  return limits_of(profile::SessionConfig{}, probe, *choose_method(MethodWish::automatic, probe, from_outside, 4));
}

TEST(MachineLimits, AreNoneWhereEverythingIsThere) { EXPECT_TRUE(limits(probe_with(TrialVerdict::fires)).empty()); }

TEST(MachineLimits, WhereNothingCanBeWatchedOneLineSaysSo) {
  for (const TrialVerdict verdict : {TrialVerdict::never, TrialVerdict::not_opened, TrialVerdict::untestable}) {
    const collectors::Probe probe = probe_with(verdict, profile::trial_all);
    EXPECT_EQ(probe.debug_registers, 0U) << "nothing is armed";
    const auto inside = limits(probe);
    ASSERT_EQ(inside.size(), 1U);
    EXPECT_EQ(inside[0].code, "lines_probed");
    EXPECT_EQ(inside[0].text.find("no watchpoints (the cause): lines are read twice"), 0U) << inside[0].text;
    EXPECT_EQ(inside[0].text.find("--observer"), std::string::npos) << "it would see nothing either";
    const auto outside = limits(probe, true);
    ASSERT_EQ(outside.size(), 1U);
    EXPECT_EQ(outside[0].text, inside[0].text);
  }
}

TEST(MachineLimits, WhereNoMemoryCanBeReadNothingIsSeen) {
  collectors::Probe probe = probe_with(TrialVerdict::never, profile::trial_all);
  probe.facilities.push_back({"line probes", false, "process_vm_readv: no", ""});
  const auto said = limits(probe, true);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].code, "watchpoints_unavailable");
  EXPECT_EQ(said[0].text,
            "no watchpoints (the cause, and process_vm_readv: no): nothing is watched, so communication between "
            "threads cannot be seen; to see it: the remedy");
}

TEST(MachineLimits, NameTheAccessesThatGoUnseen) {
  const auto said = limits(probe_with(TrialVerdict::partly, profile::trial_locked));
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].code, "watchpoints_partly");
  EXPECT_EQ(said[0].text, "the cause; communication by locked updates may not be seen; to see it: the remedy");
}

TEST(MachineLimits, WithoutSignalsAnObserverSeesAll) {
  const collectors::Probe probe = probe_with(TrialVerdict::partly, profile::trial_sigtrap);
  EXPECT_TRUE(limits(probe, true).empty());
  const auto inside = limits(probe);
  ASSERT_EQ(inside.size(), 1U);
  EXPECT_EQ(inside[0].code, "lines_probed");
  EXPECT_NE(inside[0].text.find("record with --observer"), std::string::npos) << inside[0].text;
}

TEST(MachineLimits, TellOfForbiddenEventsAndOfRegistersInUse) {
  collectors::Probe forbidden = probe_with(TrialVerdict::not_opened);
  forbidden.perf_allowed = false;
  forbidden.facilities[0] = {"perf task-clock", false, "perf_event_open: Permission denied", "sudo sysctl"};
  ASSERT_EQ(limits(forbidden).size(), 1U);
  EXPECT_EQ(limits(forbidden)[0].code, "perf_forbidden");
  const auto few = limits(probe_with(TrialVerdict::fires, 0, 2));
  ASSERT_EQ(few.size(), 1U);
  EXPECT_EQ(few[0].code, "debug_registers_in_use");
}

}  // namespace
}  // namespace crosstalk::driver
