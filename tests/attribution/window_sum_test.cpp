// SPDX-License-Identifier: Apache-2.0
#include "attribution/window_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attribution/renumber.h"

namespace crosstalk::attribution::window_sum_test {
namespace {

Amount amount(double cost_s, double half = 0, std::optional<double> gain_s = 0.0) {
  Amount a;
  a.cost_s = cost_s;
  a.cost_ci95 = Interval{cost_s - half, cost_s + half};
  a.gain_s = gain_s;
  a.gain_ci95 = Interval{0, cost_s};
  a.detections = 20;
  a.seen = 10;
  return a;
}

Cell cell(std::uint32_t producer, std::uint32_t consumer, const Amount& of_false) {
  Amount none;
  none.cost_s = none.gain_s = 0;
  return {producer, consumer, none, of_false};
}

ObjectRow object(const std::string& name, const Cell& pair, const std::string& field) {
  ObjectRow row;
  row.name = name;
  row.kind = ObjectKind::global;
  row.field = field;
  row.cells = {pair};
  row.cost_s = pair.cost();
  row.true_sharing = pair.true_sharing;
  row.false_sharing = pair.false_sharing;
  row.offsets = {{pair.consumer, 8, 4, 5, 1}};
  return row;
}

LineRow line(std::uint32_t number, const Cell& pair) {
  LineRow row{"/src/a.cpp", number, "work()", Role::consumer, {pair}, pair.cost(), {}};
  row.false_sharing = pair.false_sharing;
  return row;
}

LoopRow loop(std::uint32_t id, double cpu_s, double share) {
  LoopRow row;
  row.id = id;
  row.function = "work()";
  row.cpu_s = row.self_s = cpu_s;
  row.share = share;
  row.share_ci95 = {share - 0.1, share + 0.1};
  row.samples = 100;
  row.threads = {{1, cpu_s, cpu_s}};
  return row;
}

/// Two seconds in which threads 1 and 2 exchange `counters` for `cost_s`.
Analysis interval(double cost_s, double cpu_s, const std::string& field = "[1]") {
  Analysis a;
  a.duration_s = 2;
  a.cpu_s = cpu_s;
  a.session.begin_ns = 5;
  for (std::uint32_t i = 1; i < 3; ++i) {
    ThreadSummary thread;
    thread.index = i;
    thread.tid = static_cast<std::int32_t>(100 + i);
    thread.name = "worker";
    thread.cpu_s = cpu_s / 2;
    thread.samples = 50;
    thread.kernel_share = cpu_s > 2 ? 0.5 : 0;
    a.threads.push_back(thread);
  }
  const Cell pair = cell(1, 2, amount(cost_s, 0.3, cost_s / 2));
  a.communication.cells = {pair};
  a.communication.false_sharing = pair.false_sharing;
  a.communication.objects = {object("counters", pair, field)};
  a.communication.lines = {line(41, pair)};
  a.loops = {loop(7, cpu_s / 2, 0.5)};
  a.sampling.samples = 100;
  a.sampling.lost = 1;
  a.sampling.armed = 10;
  a.sampling.traps = 40;
  a.sampling.overhead_fraction = cpu_s > 2 ? 0.03 : 0.01;
  a.warnings = {{"overloaded", "busy: " + field}};
  return a;
}

Analysis sum(const std::vector<Analysis>& parts) {
  std::vector<const Analysis*> pointers;
  pointers.reserve(parts.size());
  for (const Analysis& part : parts) {
    pointers.push_back(&part);
  }
  return sum_of_intervals(pointers);
}

TEST(WindowSum, TimesAndCostsAreAdded) {
  const Analysis both = sum({interval(1, 2), interval(0.5, 4)});
  EXPECT_DOUBLE_EQ(both.duration_s, 4);
  EXPECT_DOUBLE_EQ(both.cpu_s, 6);
  ASSERT_EQ(both.threads.size(), 2U);
  EXPECT_DOUBLE_EQ(*both.threads[0].cpu_s, 3);
  EXPECT_EQ(both.threads[0].samples, 100U);
  EXPECT_NEAR(*both.threads[0].kernel_share, 0.5 * 2 / 3, 1e-9);
  ASSERT_EQ(both.communication.cells.size(), 1U);
  EXPECT_DOUBLE_EQ(both.communication.cells[0].cost(), 1.5);
  EXPECT_EQ(both.communication.cells[0].false_sharing.seen, 20U);
  EXPECT_EQ(both.sampling.samples, 200U);
  EXPECT_EQ(both.sampling.lost, 2U);
  EXPECT_EQ(both.sampling.traps, 80U);
  EXPECT_NEAR(*both.sampling.overhead_fraction, (0.01 * 2 + 0.03 * 4) / 6, 1e-9);
}

TEST(WindowSum, IntervalsOfTimeAreIndependent) {
  const Analysis both = sum({interval(1, 4), interval(2, 4)});
  const Interval ci = *both.communication.cells[0].false_sharing.cost_ci95;
  EXPECT_NEAR(ci.low, 3 - std::hypot(0.3, 0.3), 1e-9);
  EXPECT_NEAR(ci.high, 3 + std::hypot(0.3, 0.3), 1e-9);
}

TEST(WindowSum, ARowKeepsTheWordsOfItsGreatestCost) {
  const Analysis both = sum({interval(0.2, 2, "[1]"), interval(0.9, 2, "[3]"), interval(0.4, 2, "[2]")});
  ASSERT_EQ(both.communication.objects.size(), 1U);
  const ObjectRow& object = both.communication.objects[0];
  EXPECT_EQ(object.field, "[3]");
  EXPECT_NEAR(object.cost_s, 1.5, 1e-9);
  EXPECT_NEAR(*object.false_sharing.gain_s, 0.75, 1e-9);
  ASSERT_EQ(object.offsets.size(), 1U);
  EXPECT_EQ(object.offsets[0].loads, 15U);
  ASSERT_EQ(both.communication.lines.size(), 1U);
  EXPECT_NEAR(both.communication.lines[0].cost_s, 1.5, 1e-9);
}

TEST(WindowSum, SharesAreOfTheWholeWindow) {
  const Analysis both = sum({interval(1, 2), interval(1, 6)});
  ASSERT_EQ(both.loops.size(), 1U);
  EXPECT_NEAR(both.loops[0].share, 0.5, 1e-9);
  EXPECT_NEAR(both.loops[0].cpu_s, 4, 1e-9);
  EXPECT_NEAR(both.loops[0].share_ci95.high - 0.5, std::hypot(0.1 * 0.25, 0.1 * 0.75), 1e-9);
  ASSERT_EQ(both.loops[0].threads.size(), 1U);
  Analysis idle = interval(0, 2);
  idle.loops.clear();
  EXPECT_NEAR(sum({interval(1, 2), idle}).loops[0].share, 0.25, 1e-9);
}

TEST(WindowSum, AnUnknownCostIsThatOfTheOtherIntervals) {
  Analysis unknown = interval(0, 2);
  unknown.communication.cells[0].true_sharing = {};
  Amount& of_false = unknown.communication.cells[0].false_sharing;
  of_false.cost_s = of_false.gain_s = std::nullopt;
  of_false.cost_ci95 = std::nullopt;
  of_false.seen = 3;
  const Analysis both = sum({unknown, interval(1, 2)});
  EXPECT_DOUBLE_EQ(*both.communication.cells[0].false_sharing.cost_s, 1);
  EXPECT_EQ(both.communication.cells[0].false_sharing.seen, 13U);
  const Analysis never = sum({unknown, unknown});
  EXPECT_FALSE(never.communication.cells[0].false_sharing.cost_s);
  EXPECT_EQ(never.communication.cells[0].false_sharing.seen, 6U);
}

TEST(WindowSum, AGainOfMostOfTheCostIsThatOfAll) {
  Analysis without = interval(0.5, 2);
  without.communication.cells[0].false_sharing.gain_s = std::nullopt;
  const Analysis mostly = sum({interval(1, 2), without});
  EXPECT_NEAR(*mostly.communication.cells[0].false_sharing.gain_s, 0.75, 1e-9);
  Analysis much = interval(1.5, 2);
  much.communication.cells[0].false_sharing.gain_s = std::nullopt;
  EXPECT_FALSE(sum({interval(1, 2), much}).communication.cells[0].false_sharing.gain_s);
}

TEST(WindowSum, NothingUnseenIsLimitedByTheGreatestLimit) {
  Analysis low = interval(1, 2);
  Analysis high = interval(1, 2);
  low.communication.unseen = Unseen{{0.1, 0.4}, {{1, {0.1, 0.1}}}};
  high.communication.unseen = Unseen{{0.3, 0.2}, {{1, {0.2, 0.05}}, {2, {0.1, 0.1}}}};
  const Analysis both = sum({low, high});
  ASSERT_TRUE(both.communication.unseen);
  EXPECT_DOUBLE_EQ(both.communication.unseen->cost.true_s, 0.3);
  EXPECT_DOUBLE_EQ(both.communication.unseen->cost.false_s, 0.4);
  EXPECT_EQ(both.communication.unseen->consumers.size(), 2U);
}

TEST(WindowSum, UndetectedCostAddsUp) {
  Analysis low = interval(1, 2);
  Analysis high = interval(1, 2);
  low.communication.undetected = {EvidenceKind::watched, 0.25, "watched", {}};
  high.communication.undetected = {EvidenceKind::probed, 0.5, "probed", {}};
  const Undetected found = sum({low, high, low}).communication.undetected;
  EXPECT_DOUBLE_EQ(found.at_most_s.value(), 1);
  EXPECT_EQ(found.why, "probed") << "of the greatest";
  high.communication.undetected.met = false;
  EXPECT_TRUE(sum({low, high}).communication.undetected.met);
  EXPECT_FALSE(sum({high, high}).communication.undetected.met);
  low.communication.undetected = {EvidenceKind::none, {}, "no times", {}};
  EXPECT_FALSE(sum({high, low, high}).communication.undetected.at_most_s);
  EXPECT_EQ(sum({high, low, high}).communication.undetected.why, "no times");
}

TEST(WindowSum, FindingsAreOfTheWholeWindow) {
  const Analysis both = sum({interval(1, 2), interval(0.5, 4)});
  ASSERT_FALSE(both.findings.empty());
  EXPECT_NE(both.findings[0].sentence.find("`counters[1]`"), std::string::npos) << both.findings[0].sentence;
  EXPECT_NEAR(both.findings[0].cost_s, 1.5, 1e-9);
}

TEST(WindowSum, AWarningIsSaidOnceInItsLatestWords) {
  const Analysis both = sum({interval(1, 2, "a"), interval(1, 2, "b")});
  ASSERT_EQ(both.warnings.size(), 1U);
  EXPECT_EQ(both.warnings[0].message, "busy: b");
}

TEST(WindowSum, AnIntervalWithoutSamplesIsNoWarningForAll) {
  Analysis idle = interval(1, 2);
  idle.sampling.samples = 0;
  idle.warnings = {{"no_samples", "none"}};
  EXPECT_EQ(sum({idle, idle}).warnings.size(), 1U);
  const Analysis both = sum({interval(1, 2), idle});
  ASSERT_EQ(both.warnings.size(), 1U);
  EXPECT_EQ(both.warnings[0].code, "overloaded");
}

TEST(WindowSum, OneIntervalIsItself) {
  const Analysis one = sum({interval(1, 2)});
  EXPECT_DOUBLE_EQ(one.cpu_s, 2);
  EXPECT_DOUBLE_EQ(one.communication.cells[0].cost(), 1);
  EXPECT_NEAR(one.loops[0].share, 0.5, 1e-9);
}

TEST(Renumber, EveryThreadGetsItsNumber) {
  Analysis a = interval(1, 2);
  a.communication.sampled_uses = {{"queue", {1, 2}, 0.1, 3}};
  a.communication.unseen = Unseen{{0.1, 0.1}, {{2, {0.1, 0.1}}}};
  renumber_threads(a, [](std::uint32_t thread) { return 10 - thread; });
  EXPECT_EQ(a.threads[0].index, 8U);
  EXPECT_EQ(a.threads[0].tid, 102);
  EXPECT_EQ(a.communication.cells[0].producer, 9U);
  EXPECT_EQ(a.communication.cells[0].consumer, 8U);
  EXPECT_EQ(a.communication.objects[0].cells[0].producer, 9U);
  EXPECT_EQ(a.communication.objects[0].offsets[0].thread, 8U);
  EXPECT_EQ(a.communication.lines[0].cells[0].consumer, 8U);
  EXPECT_EQ(a.communication.sampled_uses[0].threads, (std::set<std::uint32_t>{8, 9}));
  EXPECT_EQ(a.communication.unseen->consumers[0].consumer, 8U);
  EXPECT_EQ(a.loops[0].threads[0].thread, 9U);
}

}  // namespace
}  // namespace crosstalk::attribution::window_sum_test
