// SPDX-License-Identifier: Apache-2.0
#include "driver/recording/method_choice.h"

#include <gtest/gtest.h>

namespace crosstalk::driver::method_choice_test {
namespace {

using profile::Method;
using profile::TrialVerdict;

collectors::Probe probe_with(TrialVerdict verdict, std::uint32_t silent = 0, bool can_probe = true) {
  collectors::Probe probe;
  probe.watch_trial = {verdict, silent, 4, verdict == TrialVerdict::fires ? "" : "the cause", "the remedy"};
  collectors::take_verdict(probe);
  probe.facilities = {{"line probes", can_probe, can_probe ? "" : "process_vm_readv: no", ""}};
  return probe;
}

MethodChoice chosen(MethodWish wish, const collectors::Probe& probe, bool from_outside = false,
                    std::uint32_t registers = 4) {
  const auto choice = choose_method(wish, probe, from_outside, registers);
  if (!choice) {
    ADD_FAILURE() << choice.error().message;
    return {};
  }
  return *choice;
}

std::string refused(MethodWish wish, const collectors::Probe& probe, bool from_outside = false) {
  const auto choice = choose_method(wish, probe, from_outside, 4);
  return choice ? "" : choice.error().message;
}

const collectors::Probe live = probe_with(TrialVerdict::fires);
const collectors::Probe dead = probe_with(TrialVerdict::never, profile::trial_all);

TEST(MethodChoice, AutomaticTakesWhatTheSelfTestsPassed) {
  EXPECT_EQ(chosen(MethodWish::automatic, live).method, Method::watch);
  EXPECT_EQ(chosen(MethodWish::automatic, live).why, "the self-test of watchpoints passed");
  EXPECT_EQ(chosen(MethodWish::automatic, live, true).method, Method::watch);
  EXPECT_EQ(chosen(MethodWish::automatic, dead).method, Method::probe);
  EXPECT_EQ(chosen(MethodWish::automatic, dead).why, "the cause");
  EXPECT_FALSE(chosen(MethodWish::automatic, dead).asked);
  EXPECT_EQ(chosen(MethodWish::automatic, dead, true).method, Method::probe);
}

TEST(MethodChoice, WithoutRegistersLinesAreProbed) {
  EXPECT_EQ(chosen(MethodWish::automatic, live, false, 0).method, Method::probe);
  EXPECT_EQ(chosen(MethodWish::automatic, live, false, 0).why, "--watchpoints 0 leaves no debug register");
  EXPECT_EQ(chosen(MethodWish::automatic, live, true, 0).method, Method::probe);
  EXPECT_EQ(chosen(MethodWish::watch, live, false, 0).method, Method::watch);
}

TEST(MethodChoice, WhereMemoryCannotBeReadNothingIsProbed) {
  const collectors::Probe blind = probe_with(TrialVerdict::never, profile::trial_all, false);
  EXPECT_EQ(chosen(MethodWish::automatic, blind).method, Method::none);
  EXPECT_EQ(chosen(MethodWish::automatic, blind).why, "the cause, and process_vm_readv: no");
  EXPECT_EQ(refused(MethodWish::probe, blind), "--method probe: process_vm_readv: no");
}

TEST(MethodChoice, ANamedMethodIsTakenOrRefusedInOneLine) {
  EXPECT_EQ(chosen(MethodWish::probe, live).method, Method::probe);
  EXPECT_TRUE(chosen(MethodWish::probe, live).asked);
  EXPECT_EQ(chosen(MethodWish::watch, live).method, Method::watch);
  EXPECT_EQ(refused(MethodWish::watch, dead), "--method watch: the cause; the remedy");
  EXPECT_EQ(chosen(MethodWish::probe, live, true).method, Method::probe);
}

TEST(MethodChoice, AnObserverNeedsNoSignals) {
  const collectors::Probe probe = probe_with(TrialVerdict::partly, profile::trial_sigtrap);
  EXPECT_EQ(chosen(MethodWish::watch, probe, true).method, Method::watch);
  EXPECT_EQ(refused(MethodWish::watch, probe), "--method watch: the cause; record with --observer");
}

}  // namespace
}  // namespace crosstalk::driver::method_choice_test
