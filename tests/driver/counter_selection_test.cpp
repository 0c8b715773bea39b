// SPDX-License-Identifier: Apache-2.0
#include "driver/recording/counter_selection.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace crosstalk::driver::counter_selection_test {
namespace {

using collectors::CounterEvent;
using collectors::GroupOutcome;

collectors::MachineDescription skylake() {
  collectors::PmuUnit unit;
  unit.name = "cpu";
  unit.type = 4;
  unit.format = {{"event", "config:0-7"}, {"umask", "config:8-15"}};
  collectors::MachineDescription machine;
  machine.vendor = "GenuineIntel";
  machine.family = 6, machine.model = 85;
  machine.units = {unit};
  return machine;
}

collectors::EventLibrary no_library() {
  return {[](const std::string&) -> Result<perf_event_attr> { return fail(ErrorCode::invalid_argument, "not found"); },
          [] { return std::vector<std::string>{}; }};
}

GroupOutcome takes_all(std::span<const CounterEvent> /*group*/) { return {}; }
GroupOutcome takes_none(std::span<const CounterEvent> /*group*/) {
  return {EACCES, 0, Error{ErrorCode::permission, "kernel.perf_event_paranoid is 3"}};
}

Result<CounterSelection> select(CounterChoice choice, const collectors::MachineDescription& machine,
                                const collectors::GroupTrial& trial, std::vector<std::string> names = {}) {
  RecordRequest request;
  request.counters = choice;
  request.counter_names = std::move(names);
  return select_counters(request, machine, no_library(), trial, false);
}

TEST(CounterSelection, ByItselfAllThatTheMachineCounts) {
  const auto selected = select(CounterChoice::automatic, skylake(), takes_all);
  ASSERT_TRUE(selected);
  EXPECT_GT(selected->groups.size(), 1U);
  EXPECT_FALSE(selected->asked);
  EXPECT_TRUE(words_of(*selected).warnings.empty());
  EXPECT_TRUE(no_counters_inside(*selected).groups.empty());
}

TEST(CounterSelection, OffIsNone) {
  const auto selected = select(CounterChoice::off, skylake(), takes_all);
  ASSERT_TRUE(selected);
  EXPECT_TRUE(selected->groups.empty());
  EXPECT_TRUE(words_of(*selected).warnings.empty());
}

TEST(CounterSelection, WhatTheKernelRefusesIsAWarning) {
  const auto selected = select(CounterChoice::automatic, skylake(), takes_none);
  ASSERT_TRUE(selected);
  const CounterWords words = words_of(*selected);
  ASSERT_EQ(words.warnings.size(), 1U);
  EXPECT_EQ(words.warnings[0].code, "counters_refused");
  EXPECT_NE(words.warnings[0].text.find("perf_event_paranoid"), std::string::npos);
  EXPECT_TRUE(words_of(no_counters_inside(*selected)).warnings.empty()) << "they would not have been read";
}

TEST(CounterSelection, WhatTheMachineLacksIsOneOnlyForWhoAsked) {
  const auto quiet = select(CounterChoice::automatic, {}, takes_all);
  ASSERT_TRUE(quiet);
  EXPECT_TRUE(words_of(*quiet).warnings.empty());
  const auto asked = select(CounterChoice::on, {}, takes_all);
  ASSERT_TRUE(asked) << "the recording goes on without";
  EXPECT_EQ(words_of(*asked).warnings.size(), 1U);
  auto haswell = skylake();
  haswell.model = 0x3c;
  const auto lacking = select(CounterChoice::automatic, haswell, takes_all);
  ASSERT_TRUE(lacking);
  EXPECT_TRUE(words_of(*lacking).warnings.empty());
  EXPECT_FALSE(words_of(*lacking).remarks.empty());
}

TEST(CounterSelection, AWrongNameIsRefused) {
  const auto selected = select(CounterChoice::on, skylake(), takes_all, {"l3_mises"});
  ASSERT_FALSE(selected);
  EXPECT_NE(selected.error().message.find("--counters: "), std::string::npos);
  EXPECT_NE(selected.error().message.find("l3_misses"), std::string::npos);
}

}  // namespace
}  // namespace crosstalk::driver::counter_selection_test
