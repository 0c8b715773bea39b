// SPDX-License-Identifier: Apache-2.0
#include "attribution/comparison/condition.h"

#include <gtest/gtest.h>

namespace crosstalk::attribution::comparison::test::condition_test {
namespace {

Row row(const std::string& name, std::uint32_t line, Figure before, Figure after) {
  Row r;
  r.subject.name = r.was.name = name;
  r.subject.consumer_at = r.subject.producer_at = r.was.consumer_at = r.was.producer_at = {"/src/a.cpp", line, "f"};
  r.before.cost = before;
  r.after.cost = after;
  r.before.count = {100.0, Interval{90, 110}};
  r.after.count = {300.0, Interval{280, 320}};
  r.verdict = Verdict::same;
  return r;
}

/// counters: 1 s -> 2 s (known to 0.5 s), queue: 0.1 s -> 0.1 s; CPU time 10 s -> 20 s.
Comparison made() {
  Comparison c;
  c.undetected_before.at_most_s = c.undetected_after.at_most_s = 0;
  c.before_cpu_s = 10;
  c.after_cpu_s = 20;
  c.objects = {row("counters", 14, {1.0, Interval{0.9, 1.1}}, {2.0, Interval{1.5, 2.5}}),
               row("queue", 20, {0.1, Interval{0.05, 0.2}}, {0.1, Interval{0.05, 0.2}})};
  c.lines = c.objects;
  c.total = c.objects[0];
  c.times = {{TimeRow::Kind::function, "parse", {1.0, Interval{0.9, 1.1}}, {4.0, Interval{3.5, 4.5}}},
             {TimeRow::Kind::thread, "worker", exactly(2), exactly(3)},
             {TimeRow::Kind::line, "b.cpp:7", {0.1, Interval{0, 0.2}}, {0.1, Interval{0, 0.2}}}};
  return c;
}

bool holds(const std::string& text) {
  const auto condition = parse_condition(text);
  EXPECT_TRUE(condition) << (condition ? "" : condition.error().message);
  return condition && judge(*condition, made()).holds;
}

TEST(Condition, IsReadInWhole) {
  const auto read = parse_condition(" change( cost_s )of object \"my queue[*]\">=2.5%  ");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->metric, Metric::cost_s);
  EXPECT_TRUE(read->of_change);
  EXPECT_EQ(read->selection, Selection::object);
  EXPECT_EQ(read->name, "my queue[*]");
  EXPECT_EQ(read->comparator, Comparator::greater_or_equal);
  EXPECT_DOUBLE_EQ(read->threshold, 0.025);
  EXPECT_TRUE(read->is_part);
}

TEST(Condition, HasUnits) {
  EXPECT_DOUBLE_EQ(parse_condition("gain_s>20ms")->threshold, 0.02);
  EXPECT_DOUBLE_EQ(parse_condition("cpu_s > 3")->threshold, 3);
  EXPECT_DOUBLE_EQ(parse_condition("cost_s < 5e2 us")->threshold, 5e-4);
  EXPECT_DOUBLE_EQ(parse_condition("count > 1.5 M")->threshold, 1.5e6);
  EXPECT_DOUBLE_EQ(parse_condition("change(cpu_s) > -5 %")->threshold, -0.05);
}

TEST(Condition, IsRefusedInOneLine) {
  for (const char* text : {"",
                           "cost",
                           "cost_s",
                           "cost_s 5",
                           "cost_s > ",
                           "cost_s > x",
                           "cost_s > 5 k",
                           "count > 5 s",
                           "count > 5 %",
                           "cpu_s > 5 %",
                           "change cost_s > 1",
                           "change(cost_s > 1",
                           "change() > 1",
                           "cost_s of > 1",
                           "cost_s of thing x > 1",
                           "cost_s of object > 1",
                           "cost_s of object \"x > 1",
                           "cost_s of object \"\" > 1",
                           "cpu_s of object x > 1",
                           "cost_s of function x > 1",
                           "cost_s of any loop > 1",
                           "cost_s > 5 % 6",
                           "cost_s > inf",
                           "cost_s > nan",
                           "cost_s = 5",
                           "cost_s > 1e999"}) {
    const auto read = parse_condition(text);
    EXPECT_FALSE(read) << text;
    if (!read) {
      EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
      EXPECT_EQ(read.error().code, ErrorCode::invalid_argument);
    }
  }
}

TEST(Condition, HoldsWhereAllOfTheIntervalDoes) {
  EXPECT_TRUE(holds("cost_s > 1.4"));
  EXPECT_FALSE(holds("cost_s > 1.6"));  // it may be 1.5
  EXPECT_TRUE(holds("cost_s < 2.6"));
  EXPECT_FALSE(holds("cost_s < 2.4"));
  EXPECT_TRUE(holds("cost_s >= 1.5"));
  EXPECT_FALSE(holds("cost_s > 1.5"));
}

TEST(Condition, TakesPercentOfCpuTime) {
  EXPECT_TRUE(holds("cost_s > 7 %"));  // 7.5 % of 20 s at least
  EXPECT_FALSE(holds("cost_s > 8 %"));
  EXPECT_FALSE(holds("change(cost_s) > 0 %"));  // 10 % before, 10 % after
  EXPECT_TRUE(holds("change(cost_s) > 0.4 s"));
  EXPECT_TRUE(holds("change(cpu_s) > 99 %"));
  EXPECT_TRUE(holds("cpu_s > 19.9"));
  EXPECT_TRUE(holds("change(count) of object counters > 150 %"));
}

TEST(Condition, IsOfTheRowsThatAreNamed) {
  EXPECT_TRUE(holds("cost_s of object counters > 1.4"));
  EXPECT_FALSE(holds("cost_s of object queue > 0.1"));
  EXPECT_TRUE(holds("cost_s of object * > 1.5"));  // both together
  EXPECT_TRUE(holds("cost_s of line a.cpp:14 > 1.4"));
  EXPECT_FALSE(holds("cost_s of line a.cpp:20 > 1.4"));
  const Judgement any = judge(*parse_condition("change(cost_s) of any object > 0.3"), made());
  EXPECT_TRUE(any.holds);
  EXPECT_EQ(any.of, "counters");
  EXPECT_FALSE(holds("change(cost_s) of any object > 1"));
  EXPECT_TRUE(holds("cost_s of any line > 1.4"));
}

TEST(Condition, TakesCpuTimeOfWhatHasAName) {
  EXPECT_TRUE(holds("cpu_s of function parse > 3.4"));
  EXPECT_FALSE(holds("cpu_s of function parse > 3.6"));
  EXPECT_TRUE(holds("cpu_s of function pa* > 17 %")) << "3.5 of 20 s";
  EXPECT_TRUE(holds("change(cpu_s) of thread worker >= 1"));
  EXPECT_FALSE(holds("change(cpu_s) of thread worker > -4 %")) << "20 % of all before, 15 % after";
  EXPECT_TRUE(holds("change(cpu_s) of thread worker <= -4 %"));
  const Judgement any = judge(*parse_condition("cpu_s of any function > 3"), made());
  EXPECT_TRUE(any.holds);
  EXPECT_EQ(any.of, "parse");
  EXPECT_FALSE(holds("cpu_s of any loop > 0"));
}

TEST(Condition, NamesWhatIsThere) {
  const auto named = [](const char* text) { return check_name(*parse_condition(text), made()); };
  for (const char* text :
       {"cost_s > 1", "cost_s of any object > 1", "cost_s of object counters > 1", "cost_s of object q* > 1",
        "cost_s of line a.cpp:14 > 1", "cpu_s of function parse > 1", "cpu_s of line b.cpp:7 > 1"}) {
    EXPECT_TRUE(named(text)) << text;
  }
  EXPECT_TRUE(named("cost_s of line b.cpp:7 > 1")) << "it was sampled; nothing is exchanged there";
  for (const char* text : {"cost_s of object countres > 1", "cpu_s of function pasre > 1", "cpu_s of loop parse > 1",
                           "cost_s of line a.cpp:99 > 1"}) {
    EXPECT_FALSE(named(text)) << text;
  }
  EXPECT_NE(named("cost_s of object countres > 1").error().message.find("there are: counters, queue"),
            std::string::npos);
  EXPECT_NE(named("cpu_s of loop x > 1").error().message.find("there is none"), std::string::npos);
}

TEST(Condition, IsNotJudgedByWhatIsNotKnown) {
  for (const char* text : {"gain_s > 0", "cost_s of object nobody > 0"}) {
    const Judgement judgement = judge(*parse_condition(text), made());
    EXPECT_FALSE(judgement.judged) << text;
    EXPECT_FALSE(judgement.holds) << text;
  }
}

Undetected at_most(std::optional<double> seconds) {
  Undetected undetected;
  undetected.at_most_s = seconds;
  undetected.why = "the cause";
  return undetected;
}

Judgement judged(const std::string& text, const Undetected& before, const Undetected& after) {
  Comparison c = made();
  c.undetected_before = before;
  c.undetected_after = after;
  return judge(*parse_condition(text), c);
}

TEST(UndetectedGate, DoesNotPassWhereTheLimitIsAboveItsThreshold) {
  for (const char* const gate : {"cost_s > 3", "cost_s > 15 %", "change(cost_s) > 1.5", "cost_s of any object > 3"}) {
    EXPECT_TRUE(judged(gate, at_most(0), at_most(0)).judged) << gate;
    const Judgement judgement = judged(gate, at_most(0), at_most(5));
    EXPECT_FALSE(judgement.judged || judgement.holds) << gate;
  }
  EXPECT_EQ(judged("cost_s > 3", at_most(0), at_most(1.5)).blind,
            "undetected communication of the recording after costs up to 1.5 s (8 % of its CPU time): the cause");
  EXPECT_EQ(judged("cost_s > 3", at_most(0), at_most(0.5)).blind, "") << "with all of it, it is 2.5";
  EXPECT_TRUE(judged("cost_s > 3", at_most(0), at_most(0.5)).judged);
  EXPECT_EQ(judged("cost_s > 3", at_most(0), at_most({})).blind,
            "undetected communication of the recording after has no known limit: the cause");
}

TEST(UndetectedGate, WhatWasSeenHoldsWhateverElseThereIs) {
  EXPECT_TRUE(judged("cost_s > 1.4", at_most({}), at_most({})).holds);
  EXPECT_TRUE(judged("cpu_s > 19", at_most({}), at_most({})).holds);
}

TEST(UndetectedGate, AnIncreaseMayBeWhatTheProfileBeforeDidNotDetect) {
  EXPECT_TRUE(judged("change(cost_s) > 0.3", at_most(0.05), at_most(5)).holds);
  const Judgement judgement = judged("change(cost_s) > 0.3", at_most(5), at_most(0));
  EXPECT_FALSE(judgement.judged || judgement.holds);
  EXPECT_NE(judgement.blind.find("of the recording before costs up to 5 s"), std::string::npos) << judgement.blind;
}

TEST(UndetectedGate, ADecreaseMayBeWhatTheProfileAfterDidNotDetect) {
  EXPECT_TRUE(judged("cost_s < 3", at_most(0), at_most(0.4)).holds) << "at most 2.5 and 0.4";
  EXPECT_FALSE(judged("cost_s < 3", at_most(0), at_most(0.6)).judged);
  EXPECT_TRUE(judged("change(cost_s) < 3", at_most(5), at_most(0)).holds);
  EXPECT_FALSE(judged("change(cost_s) < 3", at_most(0), at_most(5)).judged);
}

TEST(UndetectedGate, RowsThatWatchesSawHaveTheirOwnIntervals) {
  Comparison c = made();
  c.undetected_before = c.undetected_after = at_most(5);
  for (Row& seen : c.objects) {
    seen.before.seen = seen.after.seen = 9;
  }
  EXPECT_TRUE(judge(*parse_condition("cost_s of object counters > 3"), c).judged);
  EXPECT_FALSE(judge(*parse_condition("cost_s > 3"), c).judged) << "other objects may have more";
  c.blind_after = "it was probed";
  EXPECT_EQ(judge(*parse_condition("cost_s of object counters > 3"), c).blind, "it was probed");
}

TEST(UndetectedGate, TheLimitOfARowThatAProfileLacksCountsOnce) {
  Comparison c = made();
  c.undetected_before = at_most(1.2);
  c.undetected_after = at_most(0);
  c.objects = {row("counters", 14, {0.0, Interval{0, 1.2}}, {2.0, Interval{1.9, 2.1}})};
  c.objects[0].matched = Matched::appeared;
  for (const char* const gate : {"change(cost_s) of any object > 0.5", "change(cost_s) of object counters > 0.5"}) {
    EXPECT_TRUE(judge(*parse_condition(gate), c).holds) << gate;
  }
  EXPECT_TRUE(judge(*parse_condition("change(cost_s) of object counters < 3"), c).holds);
  EXPECT_FALSE(judge(*parse_condition("change(cost_s) of object counters < 1"), c).judged) << "0.8 with all of it";
  c.objects[0] = row("counters", 14, {2.0, Interval{1.9, 2.1}}, {std::nullopt, Interval{0, 1.2}});
  c.objects[0].matched = Matched::gone;
  c.undetected_after = at_most(1.2);
  EXPECT_TRUE(judge(*parse_condition("cost_s of object counters < 1.3"), c).holds);
  EXPECT_FALSE(judge(*parse_condition("cost_s of object counters > 1"), c).judged);
}

TEST(UndetectedGate, OfWhatIsNotKnownIsUndecidedToo) {
  EXPECT_NE(judged("gain_s > 1", at_most(0), at_most(5)).blind, "");
  EXPECT_EQ(judged("gain_s > 1", at_most(0), at_most(0.5)).blind, "");
  EXPECT_EQ(judged("cost_s of object nobody > 0", at_most(5), at_most(5)).blind, "") << "a slip of the finger";
}

TEST(UndetectedGate, SaysForHowLongToRecordWhereThatWouldDecideIt) {
  Comparison c = made();  // 10 % of 20 s
  c.after_duration_s = 10;
  c.undetected_after.at_most_s = c.undetected_after.by_chance_s = 2;  // 10 %
  c.total.after.seen = 0;
  const auto record_s = [&](const char* text) { return judge(*parse_condition(text), c).record_s; };
  ASSERT_TRUE(record_s("cost_s > 15 %"));  // half of it would decide nothing
  EXPECT_GE(*record_s("cost_s > 15 %"), 40);
  EXPECT_LE(*record_s("cost_s > 15 %"), 40 * 1.25);
  EXPECT_FALSE(judge(*parse_condition("cost_s > 25 %"), c).record_s) << "it is decided";
  EXPECT_TRUE(judge(*parse_condition("cost_s > 25 %"), c).judged);
  EXPECT_FALSE(record_s("cost_s > 3")) << "a limit in seconds grows with the time";
  c.undetected_after.by_chance_s = 0.5;
  EXPECT_FALSE(record_s("cost_s > 15 %")) << "most of it does not shrink";
  c.undetected_after.by_chance_s.reset();
  EXPECT_FALSE(record_s("cost_s > 15 %")) << "none of it is due to chance";
}

TEST(Condition, NamesMayHaveStars) {
  EXPECT_TRUE(matches("a*c", "abbc"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("counters[*]", "counters[3]"));
  EXPECT_FALSE(matches("counters", "counters[3]"));
  EXPECT_FALSE(matches("a*d", "abc"));
  EXPECT_TRUE(matches("*b*b", "abab"));
}

}  // namespace
}  // namespace crosstalk::attribution::comparison::test::condition_test
