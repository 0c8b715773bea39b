// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/measured_samples.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace crosstalk::observer::measured_samples_test {
namespace {

std::string text_of(const MeasuredSamples& samples, const std::string& code) {
  const auto remarks = remarks_on(samples);
  const auto found =
      std::find_if(remarks.begin(), remarks.end(), [&](const auto& remark) { return remark.code == code; });
  return found == remarks.end() ? "" : found->text;
}

TEST(MeasuredSamples, WhereAllWentWellThereIsNothingToSay) {
  MeasuredSamples samples;
  samples.count(Measured::access);
  samples.count(Measured::half_an_update);
  EXPECT_TRUE(remarks_on(samples).empty());
}

TEST(MeasuredSamples, WhatWasLeftOutIsCounted) {
  MeasuredSamples samples;
  for (int i = 0; i < 3; ++i) {
    samples.count(Measured::access);
  }
  samples.count(Measured::no_access);
  samples.count(Measured::no_access);
  samples.count(Measured::in_kernel);
  samples.count(Measured::half_an_update);
  EXPECT_EQ(text_of(samples, "samples_without_access"),
            "of 7 samples of memory events 2 were of instructions that access no memory, or whose address the "
            "processor could not tell, and 1 were in the kernel; they are left out");
}

TEST(MeasuredSamples, WhatWasToldIsNotToldAgainButWhatLastsIs) {
  MeasuredSamples samples;
  samples.count(Measured::in_kernel);
  samples.lost = 5, samples.throttled = 2, samples.counting_part = 0.3, samples.without_counter = 1;
  samples.watchdog = true;
  samples.refusal = "it is busy";
  const MeasuredSamples after = samples.of_what_lasts();
  EXPECT_EQ(text_of(after, "samples_without_access"), "");
  EXPECT_EQ(after.lost + after.throttled + after.without_counter, 0U);
  EXPECT_EQ(after.counting_part, 1);
  EXPECT_TRUE(after.watchdog);
  EXPECT_EQ(after.refusal, "it is busy");
}

TEST(MeasuredSamples, ThrottlingMultiplexingAndLossesAreReported) {
  MeasuredSamples samples;
  samples.throttled = 2;
  samples.counting_part = 0.5;
  samples.lost = 7;
  EXPECT_NE(text_of(samples, "sampling_throttled").find("2 times"), std::string::npos);
  EXPECT_NE(text_of(samples, "events_multiplexed").find("50 %"), std::string::npos);
  EXPECT_NE(text_of(samples, "measured_samples_lost").find("7 samples"), std::string::npos);
}

TEST(MeasuredSamples, WhoNeverHadACounterIsSaidWithTheRemedy) {
  MeasuredSamples samples;
  samples.without_counter = 3;
  EXPECT_EQ(text_of(samples, "events_never_counted"),
            "a memory event of 3 threads never had a counter of the processor, so that nothing was sampled by it; end "
            "what else measures (perf, another profiler, the host of a virtual machine)");
  EXPECT_EQ(text_of(samples, "events_multiplexed"), "") << "nothing stands for what was never sampled";
  samples.watchdog = true;
  samples.counting_part = 0.5;
  for (const char* const code : {"events_never_counted", "events_multiplexed"}) {
    EXPECT_NE(text_of(samples, code).find("sudo sysctl kernel.nmi_watchdog=0"), std::string::npos) << code;
  }
}

TEST(MeasuredSamples, WhoHasTheClockAloneIsSaid) {
  MeasuredSamples samples;
  samples.refusal = "no counter is free";
  EXPECT_EQ(text_of(samples, "accesses_not_sampled"), "all was sampled by the clock alone: no counter is free");
  samples.clock_alone = 3;
  EXPECT_EQ(text_of(samples, "accesses_not_sampled"), "3 threads were sampled by the clock alone: no counter is free");
}

}  // namespace
}  // namespace crosstalk::observer::measured_samples_test
