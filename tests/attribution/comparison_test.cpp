// SPDX-License-Identifier: Apache-2.0
// Two made analyses whose differences are known.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "attribution/comparison/comparable.h"
#include "attribution/comparison/compare.h"
#include "attribution/comparison/condition.h"
#include "attribution/comparison/entries.h"

namespace crosstalk::attribution::comparison::test::comparison_test {
namespace {

Figure around(double value, double half) { return {value, Interval{value - half, value + half}}; }

Amount amount(double cost_s, double half_s, std::optional<double> gain_s) {
  Amount a;
  a.cost_s = cost_s;
  a.cost_ci95 = Interval{cost_s - half_s, cost_s + half_s};
  a.gain_s = gain_s;
  a.gain_ci95 = gain_s ? Interval{*gain_s * 0.8, *gain_s * 1.2} : Interval{0, cost_s};
  a.detections = a.cost_s.value_or(0) * 100;
  a.seen = 50;
  return a;
}

Amount nothing() {
  Amount a;
  a.cost_s = 0;
  a.cost_ci95 = Interval{0, 0};
  a.gain_s = 0;
  a.gain_ci95 = Interval{0, 0};
  return a;
}

/// A program's counters and their cost: false sharing between two threads, in the loop of `line`.
struct Sharing {
  std::string object = "counters";
  std::uint32_t line = 14;
  double cost_s = 0;
  std::optional<double> gain_s;
  double half_s = 0.1;
  ObjectKind kind = ObjectKind::global;
};

void add(Analysis& analysis, const Sharing& s) {
  const Amount of_false = amount(s.cost_s, s.half_s, s.gain_s);
  Cell cell;
  cell.producer = 1;
  cell.consumer = 2;
  cell.false_sharing = of_false;
  cell.true_sharing = nothing();
  Communication& c = analysis.communication;
  LinePair pair;
  pair.producer_file = pair.consumer_file = "/src/bench.cpp";
  pair.producer_line = pair.consumer_line = s.line;
  pair.producer_function = pair.consumer_function = "worker(int)";
  pair.object = s.object;
  pair.cells = {cell};
  pair.cost_s = s.cost_s;
  pair.true_sharing = nothing();
  pair.false_sharing = of_false;
  c.line_pairs.push_back(pair);
  ObjectRow object;
  object.name = s.object;
  object.kind = s.kind;
  object.cells = {cell};
  object.cost_s = s.cost_s;
  object.true_sharing = nothing();
  object.false_sharing = of_false;
  object.sharing.kind = SharingKind::false_sharing;
  c.objects.push_back(object);
  c.cells.push_back(cell);
  c.true_sharing = nothing();
  c.false_sharing = of_false;
}

Analysis program(double cpu_s) {
  Analysis a;
  a.cpu_s = cpu_s;
  a.duration_s = cpu_s / 2;
  a.session.command = "./bench 100";
  a.session.exit_status = 0;
  a.session.complete = true;
  a.session.cpus = 2;
  a.threads.resize(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    a.threads[i].index = i;
    a.threads[i].name = i == 0 ? "bench" : "worker-" + std::to_string(i);
    a.threads[i].cpu_s = i == 0 ? 0 : cpu_s / 2;
  }
  a.communication.unseen = Unseen{{0.01, 0.02}, {}};
  LoopRow loop;
  loop.function = "worker(int)";
  loop.file = "/src/bench.cpp";
  loop.line_begin = 13;
  loop.line_end = 15;
  loop.share = 1;
  loop.share_ci95 = {0.98, 1};
  loop.cpu_s = cpu_s;
  a.loops = {loop};
  return a;
}

Analysis sharing(double cpu_s, double cost_s, std::optional<double> gain_s) {
  Analysis a = program(cpu_s);
  add(a, {"counters", 14, cost_s, gain_s});
  return a;
}

bool begins(const Comparison& c, const std::string& text) { return c.statements.front().sentence.starts_with(text); }

bool warns(const Comparison& c, const std::string& code) {
  return std::any_of(c.warnings.begin(), c.warnings.end(), [&](const Warning& w) { return w.code == code; });
}

TEST(Change, AddsDistancesInQuadrature) {
  const Figure change = change_of(around(5, 3), around(1, 4), 0);
  EXPECT_DOUBLE_EQ(*change.value, -4);
  EXPECT_DOUBLE_EQ(change.ci95->low, -9);
  EXPECT_DOUBLE_EQ(change.ci95->high, 1);
  EXPECT_EQ(direction_of(change), 0);
}

TEST(Change, UsesTheEndsThatPointAtEachOther) {
  // A decrease gets smaller by the lower end before and the upper end after.
  const Figure change = change_of({10.0, Interval{7, 100}}, {1.0, Interval{0, 5}}, 0);
  EXPECT_DOUBLE_EQ(change.ci95->high, -9 + 5);
  EXPECT_EQ(direction_of(change), -1);
}

TEST(Change, AllowsForRunsThatDifferAnyway) {
  EXPECT_EQ(direction_of(change_of(exactly(1), exactly(1.2), 0)), 1);
  EXPECT_EQ(direction_of(change_of(exactly(1), exactly(1.2), 0.15)), 0);
  EXPECT_EQ(direction_of(change_of(exactly(1), exactly(1.3), 0.15)), 1);
}

TEST(Change, OfBoundsTakesTheFarthestEnds) {
  const Figure change = change_of({std::nullopt, Interval{1, 4}}, {2.0, Interval{1, 3}}, 0);
  EXPECT_FALSE(change.value);
  EXPECT_DOUBLE_EQ(change.ci95->low, -3);
  EXPECT_DOUBLE_EQ(change.ci95->high, 2);
}

TEST(Change, OfWhatIsNotKnownIsNotKnown) {
  EXPECT_FALSE(change_of({}, exactly(1), 0).known());
  EXPECT_FALSE(change_of({2.0, std::nullopt}, exactly(1), 0).ci95);
  EXPECT_FALSE(sum_of({}, exactly(1)).known());
}

TEST(Places, FilesAreTheSameByTheirLastFolders) {
  const CodeSeen before{{{"/old/a/x.cpp", 1, "f"}, {"/old/b/x.cpp", 1, "f"}}, {}};
  const CodeSeen after{{{"/new/b/x.cpp", 1, "f"}, {"/new/a/x.cpp", 1, "f"}}, {}};
  const PlaceMap map(before, after);
  EXPECT_EQ(map.in_after({"/old/a/x.cpp", 1, "f"}).file, "/new/a/x.cpp");
  EXPECT_EQ(map.in_after({"/old/b/x.cpp", 1, "f"}).file, "/new/b/x.cpp");
  EXPECT_EQ(map.in_after({"/old/y.cpp", 1, "f"}).file, "/old/y.cpp");
}

TEST(Places, LinesOfAFunctionMoveTogether) {
  const CodeSeen before{{{"x.cpp", 43, "f"}, {"x.cpp", 44, "f"}, {"x.cpp", 90, "g"}}, {}};
  const CodeSeen after{{{"x.cpp", 46, "f"}, {"x.cpp", 47, "f"}, {"x.cpp", 90, "g"}}, {}};
  const PlaceMap map(before, after);
  EXPECT_EQ(map.in_after({"x.cpp", 43, "f"}).line, 46U);
  EXPECT_EQ(map.in_after({"x.cpp", 50, "f"}).line, 53U);  // not seen after: moved with the others
  EXPECT_EQ(map.in_after({"x.cpp", 90, "g"}).line, 90U);
}

TEST(Places, WhichLinesAreSampledIsChance) {
  const PlaceMap map({{{"x.cpp", 43, "f"}, {"x.cpp", 44, "f"}}, {}}, {{{"x.cpp", 44, "f"}, {"x.cpp", 45, "f"}}, {}});
  EXPECT_EQ(map.in_after({"x.cpp", 43, "f"}).line, 43U);
}

TEST(Places, LoopsSayMoreThanLines) {
  const LoopPlace was{{"x.cpp", 40, "f"}, 46, 1};
  const LoopPlace is{{"x.cpp", 41, "f"}, 47, 1};
  const PlaceMap map({{{"x.cpp", 43, "f"}, {"x.cpp", 44, "f"}}, {was}},
                     {{{"x.cpp", 44, "f"}, {"x.cpp", 45, "f"}}, {is}});
  EXPECT_EQ(map.in_after({"x.cpp", 43, "f"}).line, 44U);
}

TEST(Places, FunctionsWithOtherTypesAreTheSameWhereOneIsLeft) {
  EXPECT_EQ(bare_name("void counters::add<Old>(std::vector<Old>&)"), "counters::add");
  const PlaceMap map({{{"x.cpp", 5, "add(Old*)"}, {"x.cpp", 8, "get(Old*)"}}, {}},
                     {{{"x.cpp", 6, "add(New*)"}, {"x.cpp", 9, "put(New*)"}}, {}});
  EXPECT_EQ(map.in_after({"x.cpp", 5, "add(Old*)"}), (Place{"x.cpp", 6, "add(New*)"}));
  EXPECT_EQ(map.in_after({"x.cpp", 8, "get(Old*)"}).function, "get(Old*)");
}

TEST(Threads, GroupsAreNamesWithoutTheirNumbers) {
  EXPECT_EQ(without_number("worker-12"), "worker");
  EXPECT_EQ(without_number("pool 3 #7"), "pool");
  EXPECT_EQ(without_number("io"), "io");
  EXPECT_EQ(without_number("12"), "12");
}

TEST(Comparison, TellsThatPaddingHelped) {
  const Comparison c = compare(sharing(6, 5, 4), program(3.5), {});
  EXPECT_EQ(c.unit, Unit::seconds);
  EXPECT_TRUE(begins(c,
                     "Better: false sharing of `counters` at bench.cpp:14 took 5 s (83 % of the CPU time) before and "
                     "was not seen again (at most 30 ms); the program uses 42 % less CPU time (6 s -> 3.5 s)."))
      << c.statements.front().sentence;
  ASSERT_EQ(c.objects.size(), 1U);
  EXPECT_EQ(c.objects[0].matched, Matched::gone);
  EXPECT_EQ(c.objects[0].verdict, Verdict::better);
  EXPECT_NEAR(*c.objects[0].change.cost.value, -5, 1e-9);
  EXPECT_NEAR(c.objects[0].after.cost.ci95->high, 0.03, 1e-9);
  EXPECT_EQ(c.lines.at(0).verdict, Verdict::better);
  EXPECT_EQ(c.threads.at(0).subject.name, "worker");
  EXPECT_EQ(c.loops.at(0).matched, Matched::both);
}

TEST(Comparison, TellsWhatBecameWorse) {
  Analysis after = sharing(6, 0.3, 0.2);
  add(after, {"queue", 80, 2, 1.5});
  const Comparison c = compare(sharing(6, 5, 4), after, {});
  ASSERT_GE(c.statements.size(), 2U);
  EXPECT_TRUE(begins(c, "Less communication: ")) << c.statements.front().sentence;  // the CPU time is as it was
  EXPECT_TRUE(c.statements[1].sentence.starts_with("Worse: false sharing of `queue` at bench.cpp:80 takes 2 s"))
      << c.statements[1].sentence;
  EXPECT_EQ(c.objects.at(1).matched, Matched::appeared);
}

TEST(Comparison, SaysThatLessCommunicationCostMoreTime) {
  EXPECT_TRUE(begins(compare(sharing(6, 5, 4), program(9), {}), "Less communication, but more CPU time: "));
}

TEST(Comparison, OfAProfileWithItselfTellsNothing) {
  const Analysis a = sharing(6, 5, 4);
  const Comparison c = compare(a, a, {});
  EXPECT_TRUE(begins(c, "No measurable difference: "));
  EXPECT_EQ(c.total.verdict, Verdict::same);
  for (const auto* rows : {&c.objects, &c.lines, &c.threads}) {
    for (const Row& row : *rows) {
      EXPECT_EQ(row.matched, Matched::both);
      EXPECT_EQ(row.verdict, Verdict::same);
    }
  }
  EXPECT_EQ(c.loops.at(0).verdict, Verdict::same);
  EXPECT_TRUE(c.warnings.empty());
}

TEST(Comparison, MakesNoHeadlineOfWhatNobodyGains) {
  // Waiting: a report says that none of it can be saved.
  const Comparison c = compare(sharing(6, 5, 0), sharing(6, 1, 0), {});
  EXPECT_EQ(c.objects.at(0).verdict, Verdict::less);
  EXPECT_TRUE(begins(c, "No measurable difference: ")) << c.statements.front().sentence;
}

TEST(Comparison, DoesNotTellWhatIntervalsLeaveOpen) {
  Analysis before = program(6);
  add(before, {"counters", 14, 1.0, 0.5, 0.9});
  const Comparison c = compare(before, sharing(6, 0.4, 0.2), {});
  EXPECT_EQ(c.objects.at(0).verdict, Verdict::same);
  EXPECT_TRUE(begins(c, "No measurable difference: ")) << c.statements.front().sentence;
}

TEST(Comparison, KnowsNothingWhereNothingWasWatched) {
  Analysis after = program(6);
  after.communication.unseen.reset();
  const Comparison c = compare(sharing(6, 5, 4), after, {});
  EXPECT_EQ(c.objects.at(0).verdict, Verdict::unknown);
  EXPECT_TRUE(begins(c, "Not known: what communication costs is not known of the profile after"))
      << c.statements.front().sentence;
}

void set_undetected(Analysis& analysis, EvidenceKind evidence, double at_most_s) {
  analysis.communication.undetected.evidence = evidence;
  analysis.communication.undetected.at_most_s = at_most_s;
}

TEST(ComparisonUndetected, OfAllCommunicationItMayAccountForTheChange) {
  Analysis before = sharing(10, 5, 4);
  Analysis after = sharing(10, 1, 0.8);
  set_undetected(before, EvidenceKind::watched, 9);
  set_undetected(after, EvidenceKind::watched, 0.5);
  EXPECT_EQ(compare(before, after, {}).total.verdict, Verdict::better);
  set_undetected(after, EvidenceKind::watched, 6);
  const Comparison c = compare(before, after, {});
  EXPECT_EQ(c.total.verdict, Verdict::unknown);
  EXPECT_EQ(c.objects.at(0).verdict, Verdict::better) << "its interval holds what watches missed of it";
  EXPECT_EQ(compare(after, before, {}).total.verdict, Verdict::unknown);
  set_undetected(after, EvidenceKind::watched, 0.5);
  EXPECT_EQ(compare(after, before, {}).total.verdict, Verdict::worse);
}

TEST(ComparisonUndetected, OfARowWithOtherEvidenceItMay) {
  Analysis before = sharing(10, 5, 4);
  Analysis after = sharing(10, 1, 0.8);
  set_undetected(before, EvidenceKind::probed, 5);
  set_undetected(after, EvidenceKind::probed, 9);
  EXPECT_EQ(compare(before, after, {}).objects.at(0).verdict, Verdict::better) << "both miss the same";
  set_undetected(before, EvidenceKind::watched, 5);
  EXPECT_EQ(compare(before, after, {}).objects.at(0).verdict, Verdict::unknown);
  EXPECT_EQ(compare(after, before, {}).objects.at(0).verdict, Verdict::unknown);
  set_undetected(before, EvidenceKind::probed, 9);
  set_undetected(after, EvidenceKind::watched, 5);
  EXPECT_EQ(compare(after, before, {}).objects.at(0).verdict, Verdict::worse) << "watches show what they missed of it";
}

TEST(ComparisonUndetected, ARowThatIsGoneMayBeThereUnseen) {
  const Analysis before = sharing(10, 5, 4);
  Analysis after = program(10);
  after.communication.unseen.reset();
  set_undetected(after, EvidenceKind::probed, 1);
  const Comparison few = compare(before, after, {});
  EXPECT_EQ(few.objects.at(0).verdict, Verdict::better);
  EXPECT_FALSE(few.objects.at(0).after.cost.value) << "nobody knows that it is 0";
  EXPECT_DOUBLE_EQ(few.objects.at(0).after.cost.ci95->high, 1);
  set_undetected(after, EvidenceKind::probed, 9);
  EXPECT_EQ(compare(before, after, {}).objects.at(0).verdict, Verdict::unknown);
  after.communication.unseen = Unseen{{0.01, 0.02}, {}};
  set_undetected(after, EvidenceKind::watched, 0.5);
  const Comparison watched = compare(before, after, {});
  EXPECT_EQ(watched.objects.at(0).verdict, Verdict::better);
  EXPECT_EQ(watched.objects.at(0).after.cost.value, 0.0);
  EXPECT_DOUBLE_EQ(watched.objects.at(0).after.cost.ci95->high, 0.5);
}

TEST(ComparisonUndetected, IsSaidWhereItKeepsAChangeFromBeingTold) {
  Analysis before = sharing(10, 5, 4);
  Analysis after = sharing(10, 1, 0.8);
  set_undetected(before, EvidenceKind::watched, 4);
  set_undetected(after, EvidenceKind::probed, 9);
  const Comparison c = compare(before, after, {});
  EXPECT_TRUE(begins(c, "Not known: communication took 5 s")) << c.statements.front().sentence;
  EXPECT_NE(c.statements.front().sentence.find(", and undetected communication may cost up to 4 s before and 9 s now"),
            std::string::npos)
      << c.statements.front().sentence;
}

TEST(Comparison, FollowsLinesThatMoved) {
  Analysis after = program(6);
  add(after, {"counters", 20, 5, 4});
  after.loops[0].line_begin = 19;
  after.loops[0].line_end = 21;
  const Comparison c = compare(sharing(6, 5, 4), after, {});
  ASSERT_EQ(c.lines.size(), 1U);
  EXPECT_EQ(c.lines[0].matched, Matched::both);
  EXPECT_EQ(c.lines[0].was.consumer_at.line, 14U);
  EXPECT_EQ(c.lines[0].subject.consumer_at.line, 20U);
  EXPECT_EQ(c.loops.at(0).matched, Matched::both);
}

TEST(Comparison, FindsHeapObjectsByWhereTheyAreAllocated) {
  const auto with_block = [](const std::string& name, std::uint32_t line) {
    Analysis a = program(6);
    add(a, {name, 14, 5, 4, 0.1, ObjectKind::heap});
    a.communication.objects[0].allocation_path = {{"main", {"/src/bench.cpp", line}, false}};
    return a;
  };
  const Comparison c = compare(with_block("Line[64] allocated at bench.cpp:30 in main", 30),
                               with_block("PaddedLine[64] allocated at bench.cpp:30 in main", 30), {});
  ASSERT_EQ(c.objects.size(), 1U);
  EXPECT_EQ(c.objects[0].matched, Matched::both);
  EXPECT_EQ(c.objects[0].was.name, "Line[64] allocated at bench.cpp:30 in main");
}

TEST(Comparison, BlocksThatOneRunTellsApartAreOneObject) {
  const std::string site = "Line allocated at bench.cpp:30 in main";
  Analysis before = program(6);
  add(before, {"Line #2 of 3 allocated at bench.cpp:30 in main", 14, 3, 2, 0.1, ObjectKind::heap});
  add(before, {"Line #1, #3 of 3 allocated at bench.cpp:30 in main", 14, 2, 2, 0.1, ObjectKind::heap});
  for (ObjectRow& object : before.communication.objects) {
    object.site = site;
  }
  Analysis after = program(6);
  add(after, {site, 14, 5, 4, 0.1, ObjectKind::heap});
  const Comparison c = compare(before, after, {});
  ASSERT_EQ(c.objects.size(), 1U);
  EXPECT_EQ(c.objects[0].matched, Matched::both);
  EXPECT_EQ(c.objects[0].was.name, site);
  EXPECT_EQ(c.objects[0].was.consumer_at.line, 14U);
  EXPECT_NEAR(c.objects[0].before.cost.value.value_or(0), 5, 1e-9);
}

TEST(Comparison, ComparesSharesWhereRunsAreNotTheSameWork) {
  Analysis longer = sharing(12, 10, 8);
  longer.session.command = "./bench 200";
  const Comparison c = compare(sharing(6, 5, 4), longer, {});
  EXPECT_EQ(c.unit, Unit::share);
  EXPECT_TRUE(warns(c, "different_arguments"));
  EXPECT_EQ(c.objects.at(0).verdict, Verdict::same);
  EXPECT_EQ(compare(sharing(6, 5, 4), longer, {Unit::seconds, 0.15}).objects.at(0).verdict, Verdict::worse);
  Analysis cut = sharing(6, 5, 4);
  cut.session.complete = false;
  EXPECT_EQ(compare(cut, sharing(6, 5, 4), {}).unit, Unit::share);
}

TEST(Comparison, WarnsOfWhatDiffers) {
  Analysis other = sharing(6, 5, 4);
  other.session.command = "./other 100";
  other.session.cpu_model = "Another";
  other.session.config.period_ns = 1'000'000;
  const Comparison c = compare(sharing(6, 5, 4), other, {});
  for (const char* code : {"different_program", "different_machine", "different_sampling"}) {
    EXPECT_TRUE(warns(c, code)) << code;
  }
  EXPECT_TRUE(c.in_common);
}

TEST(Comparison, WarnsIfThreadsWaitedForAProcessorInOneFarMore) {
  Analysis before = sharing(6, 5, 4);
  Analysis after = before;
  before.session.waits = {4, 290, 710};
  after.session.waits = {4, 480, 520};
  const auto said = [&] {
    std::string text;
    for (const Warning& warning : compare(before, after, {}).warnings) {
      text += warning.code == "different_load" ? warning.message : "";
    }
    return text;
  };
  EXPECT_EQ(said().rfind("threads waited for a processor 71 % of the time before and 52 % after: ", 0), 0U) << said();
  after.session.waits = {4, 350, 650};
  EXPECT_EQ(said(), "") << "nearly the same";
  after.session.waits = {};
  EXPECT_EQ(said(), "") << "not known";
}

TEST(Comparison, KnowsWhenProgramsHaveNothingInCommon) {
  Analysis other = program(1);
  other.session.command = "./other";
  other.loops.clear();
  EXPECT_FALSE(compare(sharing(6, 5, 4), other, {}).in_common);
}

TEST(Comparison, OneSourceFileIsEnoughInCommon) {
  Analysis other = program(1);
  other.session.command = "./other 100";
  other.loops.clear();
  other.functions.push_back({"drain()", "/src/bench.cpp", "other", 40, 0.01, 1});
  const Comparison c = compare(sharing(6, 5, 4), other, {});
  EXPECT_TRUE(c.in_common);
  EXPECT_FALSE(c.statements.empty());
  other.functions[0].file = "/usr/include/c++/12/atomic";
  EXPECT_FALSE(compare(sharing(6, 5, 4), other, {}).in_common);
}

TEST(Comparison, WhatAnyProgramHasIsNothingInCommon) {
  Analysis before = program(1);
  Analysis after = program(1);
  after.session.command = "./other";
  for (Analysis* a : {&before, &after}) {
    a->loops.clear();
    a->functions = {{"memset", "", "/lib/x86_64-linux-gnu/libc.so.6", 0, 0.1, 1}, {"main", "", "/opt/one", 0, 0.1, 1}};
    add(*a, {"main_arena", 14, 3, 2, 0.1, ObjectKind::unknown});
    a->communication.line_pairs.clear();
  }
  EXPECT_FALSE(compare(before, after, {}).in_common);
  for (Analysis* a : {&before, &after}) {
    a->functions.push_back({"parse_header", "", "/opt/one", 0, 0.1, 1});
  }
  EXPECT_TRUE(compare(before, after, {}).in_common) << "a function of their own";
}

TEST(Comparison, HasTheWaitsThatWereMeasured) {
  Analysis before = sharing(10, 6, 5.5);
  Analysis after = before;
  EXPECT_TRUE(compare(before, after, {}).waits.empty()) << "neither measured them";
  WaitPlace place;
  place.kind = profile::WaitKind::mutex;
  place.waited_s = 4;
  before.wait_places = {place};
  before.session.config.measure_waits = 1;
  const WaitRow alone = compare(before, after, {}).waits.at(0);
  EXPECT_FALSE(alone.after.known()) << "not 0";
  EXPECT_EQ(alone.verdict, Verdict::unknown);
  after.session.config.measure_waits = 1;
  place.waited_s = 1;
  after.wait_places = {place};
  const Comparison c = compare(before, after, {});
  ASSERT_EQ(c.waits.size(), 1U);
  EXPECT_EQ(c.waits[0].what, profile::WaitClass::lock);
  EXPECT_DOUBLE_EQ(*c.waits[0].before.value, 4);
  EXPECT_DOUBLE_EQ(*c.waits[0].change.value, -3);
  EXPECT_LT(c.waits[0].change.ci95->high, 0);
  EXPECT_EQ(c.waits[0].verdict, Verdict::better);
  EXPECT_TRUE(std::any_of(c.statements.begin(), c.statements.end(), [](const Statement& statement) {
    return statement.sentence == "Waits for locks fell from 4 s to 1 s of thread time, asleep or not.";
  }));
  after.wait_places[0].sampled = true;
  after.wait_places[0].waited_ci95 = {0, 5};
  EXPECT_EQ(compare(before, after, {}).waits.at(0).verdict, Verdict::same) << "it may be as long as before";
  after.wait_places[0].sampled = false;
  before.wait_places[0].kind = after.wait_places[0].kind = profile::WaitKind::condition;
  EXPECT_EQ(compare(before, after, {}).waits.at(0).verdict, Verdict::less) << "nothing is lost by waiting for work";
  before.wait_places[0].waited_s = 0.05;
  after.wait_places[0].waited_s = 0.02;
  EXPECT_EQ(compare(before, after, {}).waits.at(0).verdict, Verdict::same) << "next to nothing";
}

TEST(Comparison, HasTheTimesOfWhatHasAName) {
  Analysis before = program(1);
  Analysis after = program(1);
  before.sampling.samples = after.sampling.samples = 1000;
  before.functions = {{"parse", "/src/p.cpp", "bench", 3, 0.25, 0.25}};
  after.code_lines = {{"/src/p.cpp", 5, "parse", 0.5, 0.5}};
  const Comparison c = compare(before, after, {});
  const auto of = [&](TimeRow::Kind what, const std::string& name) {
    const auto row = std::find_if(c.times.begin(), c.times.end(),
                                  [&](const TimeRow& r) { return r.kind == what && r.name == name; });
    return row == c.times.end() ? TimeRow{} : *row;
  };
  const TimeRow parse = of(TimeRow::Kind::function, "parse");
  EXPECT_DOUBLE_EQ(parse.before.value.value_or(-1), 0.25);
  ASSERT_TRUE(parse.after.ci95);
  EXPECT_DOUBLE_EQ(parse.after.ci95->low, 0);
  EXPECT_LT(parse.after.ci95->high, 0.01) << "of a thousand samples none was there";
  EXPECT_DOUBLE_EQ(of(TimeRow::Kind::line, "p.cpp:5").after.value.value_or(-1), 0.5);
}

TEST(Comparison, ComparesLoopsByTheTimeOfAnIteration) {
  const auto with_rate = [](double per_s) {
    Analysis a = program(6);
    a.loops[0].rates.iterations.per_s = per_s;
    a.loops[0].rates.iterations.ci95 = Interval{per_s * 0.99, per_s * 1.01};
    return a;
  };
  const Comparison c = compare(with_rate(1e8), with_rate(4e8), {});
  EXPECT_EQ(c.loops.at(0).verdict, Verdict::better);
  EXPECT_NEAR(*c.loops[0].change.iteration_s.value, -7.5e-9, 1e-12);
  EXPECT_EQ(c.statements.back().sentence,
            "An iteration of the loop in worker(int) at bench.cpp:13 takes 2.5 ns of CPU time now, 10 ns before.");
}

Analysis of_build(const char* build_id) {
  Analysis a;
  a.session.command = "./prog";
  a.build_id = build_id;
  return a;
}

bool has(const std::vector<Warning>& warnings, const char* code) {
  return std::any_of(warnings.begin(), warnings.end(), [&](const Warning& w) { return w.code == code; });
}

TEST(Builds, AnotherBuildIsSaid) {
  EXPECT_TRUE(has(differences(of_build("aa"), of_build("bb")), "different_build"));
  EXPECT_FALSE(has(differences(of_build("aa"), of_build("aa")), "different_build"));
  EXPECT_FALSE(has(differences(of_build(""), of_build("bb")), "different_build"));
}

TEST(Builds, AProgramThatIsNotThereAnyMoreIsSaid) {
  Analysis gone = of_build("aa");
  gone.program_missing = "./prog has changed since the recording";
  const auto warnings = differences(gone, of_build("bb"));
  const auto found =
      std::find_if(warnings.begin(), warnings.end(), [](const Warning& w) { return w.code == "program_missing"; });
  ASSERT_NE(found, warnings.end());
  EXPECT_NE(found->message.find("of the profile before"), std::string::npos) << found->message;
  EXPECT_NE(found->message.find("has changed since the recording"), std::string::npos);
}

/// Lines of one function that were sampled.
Analysis with_lines(const char* build_id, const std::vector<std::uint32_t>& lines) {
  Analysis a = of_build(build_id);
  a.cpu_s = 1;
  for (const std::uint32_t line : lines) {
    LoopRow loop;
    loop.function = "f";
    loop.file = "/src/a.cpp";
    loop.line_begin = line;
    loop.line_end = line + 2;
    loop.share = 0.5;
    a.loops.push_back(loop);
  }
  return a;
}

TEST(Builds, OfOneBuildNothingHasMoved) {
  const auto matched = [](const char* before, const char* after) {
    return compare(with_lines(before, {10}), with_lines(after, {20}), {}).loops.front().matched;
  };
  EXPECT_EQ(matched("aa", "bb"), Matched::both);
  EXPECT_NE(matched("aa", "aa"), Matched::both);
}

}  // namespace
}  // namespace crosstalk::attribution::comparison::test::comparison_test
