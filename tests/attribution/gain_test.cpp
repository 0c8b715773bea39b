// SPDX-License-Identifier: Apache-2.0
// Savings of a cost: by a loop's iterations, by the processors, by the loop's purpose.
#include "attribution/estimate/gain.h"

#include <gtest/gtest.h>

#include "attribution/gain_limits.h"

namespace crosstalk::attribution::test::gain_test {
namespace {

constexpr profile::CoreTimes core{500, 4000, 2000};  // 2 GHz

/// 10 s of a loop, `rate` iterations a second in millions, of which communication costs 9 s.
PayingLoop loop(double rate) {
  PayingLoop loop;
  loop.self_s = 10;
  loop.cost_s = 9;
  loop.iterations = 10 * rate * 1e6;
  loop.iterations_ci95 = Interval{10 * rate * 0.9e6, 10 * rate * 1.1e6};
  loop.local = symbolizer::IterationTime{2, 10, 40};  // cycles: 1, 5 and 20 ns
  return loop;
}

TEST(Gain, SlowIterationsGainNearlyAllOfTheirCost) {
  const GainPart part = gain_of_loop(loop(1), core);  // 1000 ns each
  ASSERT_TRUE(part.likely);
  EXPECT_DOUBLE_EQ(*part.likely, 1) << "9.95 s of 10 would be saved: no more than the cost";
  EXPECT_GT(part.low, 0.99);
}

TEST(Gain, FastOnesDoWhatTheyWouldAnyway) {
  const GainPart part = gain_of_loop(loop(100), core);  // 10 ns each, 5 of them anyway
  ASSERT_TRUE(part.likely);
  EXPECT_NEAR(*part.likely, 10 * 0.5 / 9, 1e-9);
  EXPECT_DOUBLE_EQ(part.low, 0) << "at worst its code takes longer than it does";
  EXPECT_DOUBLE_EQ(part.high, 1) << "renamed, its word would take a nanosecond of ten";
  EXPECT_LT(*part.likely, part.high);
}

TEST(Gain, AsFastAsItCanBeGainsNothing) {
  const GainPart part = gain_of_loop(loop(200), core);
  EXPECT_DOUBLE_EQ(part.likely.value(), 0);
}

TEST(Gain, WaitingGainsNothing) {
  const GainPart of_loop{0.5, 1, 0.8};
  EXPECT_EQ(gain_of_waiting(symbolizer::Waiting::surely, of_loop).likely, 0);
  EXPECT_EQ(gain_of_waiting(symbolizer::Waiting::surely, of_loop).high, 0);
  EXPECT_EQ(gain_of_waiting(symbolizer::Waiting::perhaps, of_loop).likely, 0);
  EXPECT_EQ(gain_of_waiting(symbolizer::Waiting::perhaps, of_loop).high, 1) << "it may find at once what it looks for";
  EXPECT_EQ(gain_of_waiting(symbolizer::Waiting::no, of_loop).likely, 0.8);
}

TEST(Gain, WhatFunctionsPayThatALoopCalls) {
  PayingLoop calls = loop(10);  // 1e8 iterations, 9 s
  calls.accesses_cycles = 16;   // 8 ns
  const GainPart part = gain_of_loop(calls, core);
  EXPECT_NEAR(part.likely.value(), (9 - 0.8) / 9, 1e-9);
  EXPECT_NEAR(part.low, (9 - 4 * 0.88) / 9, 1e-9);
  EXPECT_DOUBLE_EQ(part.high, 1);
}

TEST(Gain, WhatIsNotKnownIsBoundedByTheCost) {
  PayingLoop without_rate = loop(1);
  without_rate.iterations.reset();
  PayingLoop without_code = loop(1);
  without_code.local.reset();
  for (const PayingLoop& unknown : {without_rate, without_code}) {
    const GainPart part = gain_of_loop(unknown, core);
    EXPECT_FALSE(part.likely);
    EXPECT_EQ(part.low, 0);
    EXPECT_EQ(part.high, 1);
  }
  EXPECT_FALSE(gain_of_loop(loop(1), {}).likely) << "a profile without the core's times";
}

TEST(Gain, ALineThatIsSharedTrulyTooMovesAnyway) {
  const GainPart part{0.4, 1, 0.8};
  EXPECT_EQ(gain_beside_true_sharing(false_only(0, 10), part).likely, 0.8);
  EXPECT_DOUBLE_EQ(gain_beside_true_sharing(false_only(5, 10), part).likely.value(), 0.4);
  EXPECT_EQ(gain_beside_true_sharing(false_only(10, 10), part).likely, 0);
  EXPECT_EQ(gain_beside_true_sharing(false_only(20, 10), part).low, 0);
  EXPECT_EQ(gain_beside_true_sharing(false_only(10, 10), part).high, 1) << "as seen: the bound stays";
  EXPECT_EQ(gain_beside_true_sharing(false_only(10, 10), GainPart{}).likely, 0);
}

TEST(Gain, NothingOnOneProcessorLittleOnOneCore) {
  const GainPart whole{0.8, 1, 0.9};
  EXPECT_EQ(gain_between(profile::Nearness::same_cpu, whole).likely, 0);
  EXPECT_EQ(gain_between(profile::Nearness::same_cpu, whole).high, 0);
  const GainPart siblings = gain_between(profile::Nearness::same_core, whole);
  EXPECT_LT(*siblings.likely, 0.2);
  EXPECT_LE(siblings.high, 0.5);
  EXPECT_EQ(siblings.low, 0);
  EXPECT_EQ(gain_between(profile::Nearness::same_l3, whole).likely, 0.9);
  EXPECT_EQ(gain_between(profile::Nearness::unknown, whole).likely, 0.9);
}

TEST(GainLimits, NoMoreThanThoseHaveWhoPay) {
  std::vector<ThreadSummary> threads(4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    threads[i].index = i;
    threads[i].cpu_s = 1;
    threads[i].brief = i >= 2;
  }
  const auto amount = [] {
    Amount a;
    a.cost_ci95 = a.gain_ci95 = Interval{0.2, 5};
    return a;
  };
  ObjectRow row;
  row.true_sharing = row.false_sharing = amount();
  row.cells = {{3, 0, amount(), {}}};
  Communication communication;
  communication.objects = {row, row, row};
  communication.objects[1].cells = {{0, 2, amount(), {}}};
  communication.objects[2].cells = {{3, 0, amount(), {}}, {3, 1, amount(), {}}};
  limit_gains(communication, threads);
  const auto& objects = communication.objects;
  EXPECT_DOUBLE_EQ(objects[0].true_sharing.gain_ci95->high, 1) << "the producer pays nothing";
  EXPECT_DOUBLE_EQ(objects[0].true_sharing.gain_ci95->low, 0.2);
  EXPECT_DOUBLE_EQ(objects[0].true_sharing.cost_ci95->high, 1);
  EXPECT_DOUBLE_EQ(sum_of(objects[0].true_sharing, objects[0].false_sharing).gain_ci95->high, 1)
      << "both sorts together, too";
  EXPECT_DOUBLE_EQ(objects[1].true_sharing.gain_ci95->high, 2) << "of all brief threads";
  EXPECT_DOUBLE_EQ(objects[2].true_sharing.gain_ci95->high, 2);
  EXPECT_DOUBLE_EQ(objects[2].cells[1].true_sharing.gain_ci95->high, 1);

  threads[0].cpu_s.reset();
  communication.objects = {row};
  limit_gains(communication, threads);
  EXPECT_DOUBLE_EQ(communication.objects[0].true_sharing.gain_ci95->high, 5) << "their time is not known";
}

TEST(GainLimits, AGainIsAPartOfItsCost) {
  std::vector<ThreadSummary> threads(2);
  threads[1].index = 1;
  threads[0].cpu_s = threads[1].cpu_s = 10;
  Amount amount;
  amount.cost_s = 1;
  amount.cost_ci95 = Interval{0.5, 2};
  amount.gain_ci95 = Interval{0, 5};
  Communication communication;
  communication.true_sharing = amount;
  communication.cells = {{0, 1, amount, {}}};
  limit_gains(communication, threads);
  EXPECT_DOUBLE_EQ(communication.true_sharing.gain_ci95->high, 2);
}

TEST(SaidGain, IsNeverMoreThanTheCostThatItIsSaidOf) {
  const auto said = [](std::optional<double> gain_s, Interval ci95) {
    return said_gain({1, Interval{0.5, 2}, gain_s, ci95});
  };
  EXPECT_DOUBLE_EQ(said(std::nullopt, {0, 2})->seconds, 1);
  EXPECT_TRUE(said(std::nullopt, {0, 2})->at_most);
  EXPECT_DOUBLE_EQ(said(0.25, {0, 2})->seconds, 0.25);
  EXPECT_FALSE(said(0.25, {0, 2})->at_most);
  EXPECT_DOUBLE_EQ(said(1.5, {0, 2})->seconds, 1);
  EXPECT_DOUBLE_EQ(said(0, {0, 0.5})->seconds, 0.5) << "a likely gain of none excludes no other";
  EXPECT_TRUE(said(0, {0, 0.5})->at_most);
  EXPECT_DOUBLE_EQ(said(0, {0, 0})->seconds, 0);
  EXPECT_FALSE(said(0, {0, 0})->at_most);
  EXPECT_FALSE(said_gain({0, {}, std::nullopt, Interval{0, 2}})) << "nothing is known of it";
}

TEST(GainLimits, UnseenIsNoMoreThanTheTimeBesideTheSeen) {
  std::vector<ThreadSummary> threads(2);
  threads[1].index = 1;
  threads[0].cpu_s = threads[1].cpu_s = 1;
  Amount seen;
  seen.cost_s = 0.75;
  Communication communication;
  communication.cells = {{0, 1, seen, {}}};
  communication.unseen = Unseen{{1.5, 0.1}, {{0, {0.5, 2}}, {1, {0.5, 0.1}}}};
  limit_unseen(communication, threads);
  const Unseen& unseen = *communication.unseen;
  EXPECT_DOUBLE_EQ(unseen.cost.true_s, 1.25);
  EXPECT_DOUBLE_EQ(unseen.cost.false_s, 0.1);
  EXPECT_DOUBLE_EQ(unseen.consumers[0].cost.true_s, 0.5);
  EXPECT_DOUBLE_EQ(unseen.consumers[0].cost.false_s, 1);
  EXPECT_DOUBLE_EQ(unseen.consumers[1].cost.true_s, 0.25);
  EXPECT_DOUBLE_EQ(unseen.consumers[1].cost.false_s, 0.1);

  threads[0].cpu_s.reset();
  communication.unseen = Unseen{{1.5, 0.1}, {{0, {0.5, 2}}}};
  limit_unseen(communication, threads);
  EXPECT_DOUBLE_EQ(communication.unseen->cost.true_s, 1.5) << "their time is not known";
  EXPECT_DOUBLE_EQ(communication.unseen->consumers[0].cost.false_s, 2);
}

}  // namespace
}  // namespace crosstalk::attribution::test::gain_test
