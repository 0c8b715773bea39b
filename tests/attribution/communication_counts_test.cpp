// SPDX-License-Identifier: Apache-2.0
// Programs with known exchanges, as the rows of a profile of them.
#include "attribution/counts/communication_counts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "attribution/estimate/amounts.h"
#include "attribution/estimate/estimator.h"
#include "rows.h"

namespace crosstalk::attribution::communication_counts_test {
namespace {

using namespace test;

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t consumer_ip = load_ip - 4;

/// Two threads, 1 and 2, that take turns at a line: each loads it, then stores to it. A watch is opened each 10 ms and
/// sees six takeovers; the test chooses the rest.
struct Program {
  std::uint64_t watches = 100, runs = 6, lines = 1;
  std::uint64_t cycle_ns = 60'000;  // while it is watched, from a thread's taking to its next
  std::uint64_t steps_a_ms = 500;   // of the counter, watched or not
  std::function<std::uint64_t(std::uint64_t)> steps_of_cycle = [](std::uint64_t) { return 1; };
  bool idle_watches = false;  // every other pair of watches sees nothing
  bool detours = false;       // in every third watch, takings but the first are at another instruction, sooner
  std::uint64_t apart = 0;    // thread 2 is in another process, which has the lines mapped as much higher
  std::uint64_t early = 0;    // steps that were made before all others
  std::uint64_t horizon_ns = 20 * ms;

  std::vector<profile::WatchRow> watch_rows;
  std::vector<profile::TrapRow> trap_rows;
  std::vector<profile::SampleRow> samples;
  std::vector<OwnershipTimeline> timelines;

  void run() {
    for (std::uint64_t w = 0; w < watches; ++w) {
      watch(w);
    }
    tell();
  }

  void tell() {
    timelines.clear();
    for (std::size_t w = 0, next = 0; w < watch_rows.size(); ++w) {
      const std::size_t begin = next;
      while (next < trap_rows.size() && trap_rows[next].watch == watch_rows[w].id) {
        ++next;
      }
      timelines.push_back(ownership_timeline(watch_rows[w], std::span(trap_rows).subspan(begin, next - begin), threads,
                                             [](Moment, std::uint64_t ip) -> std::optional<symbolizer::MemoryAccess> {
                                               return instruction(ip == store_ip ? AccessKind::store
                                                                                 : AccessKind::load);
                                             }));
    }
  }

  [[nodiscard]] CountTable count() const {
    ConsumerSamples consumers(timelines);
    for (const profile::SampleRow& sample : samples) {
      consumers.add(sample);
    }
    TrapIndex traps;
    for (std::uint32_t w = 0; w < watch_rows.size(); ++w) {
      const auto is_before = [](const profile::TrapRow& trap, WatchId id) { return trap.watch < id; };
      const auto begin = std::lower_bound(trap_rows.begin(), trap_rows.end(), watch_rows[w].id, is_before);
      const auto end = std::find_if(begin, trap_rows.end(),
                                    [&](const profile::TrapRow& trap) { return trap.watch != watch_rows[w].id; });
      traps.add(w, {begin, end});
    }
    return count_communications({watch_rows, traps, timelines, consumers, 12'000, threads});
  }

 private:
  void watch(std::uint64_t w) {
    const std::uint64_t begin = (w + 1) * 10 * ms;
    profile::WatchRow row;
    row.id = WatchId{static_cast<std::uint32_t>(w + 1)};
    row.thread = ThreadId{static_cast<std::uint32_t>(1 + w % 2)};
    row.line = line + w * 7 % lines * 64 + (w % 2 == 1 ? apart : 0);
    row.time_ns = begin;
    row.words = {word_at(0)};
    row.horizon_ns = horizon_ns;
    row.close_ns = begin + 9 * ms;
    watch_rows.push_back(row);
    for (const std::uint32_t thread : {1U, 2U}) {
      profile::SampleRow sample;
      sample.thread = ThreadId{thread};
      sample.time_ns = begin;
      sample.access_ip = consumer_ip;
      sample.address = mapped(row, thread);
      samples.push_back(sample);
    }
    std::uint64_t step = begin * steps_a_ms / ms + early;
    for (std::uint64_t r = 0; r < (idle_watches && w % 4 < 2 ? 0 : runs); ++r) {
      const std::uint64_t at = begin + 50'000 + r * cycle_ns / 2;
      const bool detour = detours && w % 3 == 0 && r > 1;
      step += r > 0 && r % 2 == 0 && !detour ? steps_of_cycle(w * runs + r) : 0;
      trap(row, static_cast<std::uint32_t>(2 - (w + r) % 2), at, step, detour ? mystery_ip : load_ip);
      trap(row, static_cast<std::uint32_t>(2 - (w + r) % 2), at + 5'000, step, store_ip);
    }
  }

  [[nodiscard]] std::uint64_t mapped(const profile::WatchRow& watch, std::uint32_t thread) const {
    return watch.line - (watch.thread == ThreadId{2} ? apart : 0) + (thread == 2 ? apart : 0);
  }

  void trap(const profile::WatchRow& watch, std::uint32_t thread, std::uint64_t at, std::uint64_t step,
            std::uint64_t ip) {
    profile::TrapRow row;
    row.watch = watch.id;
    row.thread = ThreadId{thread};
    row.sequence = trap_rows.empty() || trap_rows.back().watch != watch.id ? 0 : trap_rows.back().sequence + 1;
    row.time_ns = at;
    row.ip = ip;
    row.line = mapped(watch, thread);
    row.write_only = ip == store_ip;
    row.registers[Register::rsp] = 0x7000;
    row.registers[Register::rbx] = step;
    trap_rows.push_back(row);
  }

  std::vector<profile::ThreadRow> threads = make_threads(3);
};

/// Returns the only groups: consumed by thread 1, and by thread 2.
std::vector<CountGroup> both(const CountTable& table) {
  EXPECT_EQ(table.groups.size(), 2U);
  return table.groups;
}

TEST(CommunicationCounts, FastExchangeIsCountedByTheProgramsOwnCounter) {
  Program program;
  program.run();
  const CountTable table = program.count();
  // From the first to the last watch are 990 ms; samples are 10 ms apart, and as much is added at each end.
  for (const CountGroup& group : both(table)) {
    ASSERT_TRUE(group.count) << group.unknown;
    EXPECT_NEAR(*group.count, 500.0 * 1010, 0.005 * 500 * 1000);
    EXPECT_GT(group.error, 0.005);
    EXPECT_LT(group.error, 0.1);
  }
  // Four of the six runs of a watch consume a seen store, and so does the second.
  EXPECT_EQ(table.groups[0].lines.at(0).seen + table.groups[1].lines.at(0).seen, 100.0 * 5);
  std::size_t placed = 0;
  for (std::uint32_t w = 0; w < program.timelines.size(); ++w) {
    for (const SeenCommunication& seen : program.timelines[w].communications) {
      placed += table.place(w, &seen).group != CountTable::none ? 1 : 0;
    }
  }
  EXPECT_EQ(placed, 500U);
}

TEST(CommunicationCounts, EachLineOfAnArrayCounts) {
  Program program;
  program.watches = 400;
  program.lines = 16;
  program.run();
  for (const CountGroup& group : both(program.count())) {
    ASSERT_TRUE(group.count) << group.unknown;
    EXPECT_NEAR(*group.count, 16 * 500.0 * 4000, 0.02 * 16 * 500 * 4000);
  }
}

TEST(CommunicationCounts, ALineThatProcessesHaveMappedApartIsOne) {
  Program program;
  program.apart = 1U << 20U;
  program.run();
  for (const CountGroup& group : both(program.count())) {
    ASSERT_TRUE(group.count) << group.unknown;
    EXPECT_NEAR(*group.count, 500.0 * 1010, 0.005 * 500 * 1000);
    EXPECT_EQ(group.lines.size(), 1U);
  }
}

TEST(CommunicationCounts, WhatCameBeforeTheFirstTrapIsReadFromACounterThatBeganAt0) {
  Program program;
  program.early = 100'000;
  program.run();
  for (const CountGroup& group : both(program.count())) {
    ASSERT_TRUE(group.count) << group.unknown;
    EXPECT_NEAR(*group.count, 100'000 + 500.0 * 1010, 0.005 * 500 * 1000);
  }
  for (profile::SampleRow& sample : program.samples) {
    sample.time_ns += 100 * ms;  // threads that were there for long before the first exchange: counted something else
  }
  for (profile::WatchRow& watch : program.watch_rows) {
    watch.time_ns += 100 * ms;
    watch.close_ns += 100 * ms;
  }
  for (profile::TrapRow& trap : program.trap_rows) {
    trap.time_ns += 100 * ms;
  }
  program.tell();
  for (const CountGroup& group : both(program.count())) {
    ASSERT_TRUE(group.count) << group.unknown;
    EXPECT_NEAR(*group.count, 500.0 * 1010, 0.005 * 500 * 1000);
  }
}

TEST(CommunicationCounts, TakingsAtAnotherInstructionAreCyclesThatEndElsewhere) {
  Program program;
  program.detours = true;
  program.run();
  for (const CountGroup& group : both(program.count())) {
    EXPECT_FALSE(group.count);
  }
}

TEST(CommunicationCounts, IterationsThatVaryAreNotCounted) {
  Program program;
  program.steps_of_cycle = [](std::uint64_t cycle) { return 1 + cycle % 5; };
  program.run();
  for (const CountGroup& group : both(program.count())) {
    EXPECT_FALSE(group.count);
    EXPECT_NE(group.unknown.find("no counter"), std::string::npos) << group.unknown;
  }
}

TEST(CommunicationCounts, SlowExchangeGoesByTime) {
  Program program;
  program.steps_of_cycle = [](std::uint64_t cycle) { return 1 + cycle % 5; };
  program.cycle_ns = 2 * ms;
  program.run();
  for (const CountGroup& group : both(program.count())) {
    ASSERT_TRUE(group.count) << group.unknown;
    EXPECT_NEAR(*group.count, 1000.0 / 2, 25);
    EXPECT_LE(std::abs(*group.count - 500), group.error * *group.count);
  }
}

TEST(CommunicationCounts, TooSlowToBeFollowedIsNotCounted) {
  Program program;
  program.steps_of_cycle = [](std::uint64_t cycle) { return 1 + cycle % 5; };
  program.cycle_ns = 3 * ms;
  program.run();
  for (const CountGroup& group : both(program.count())) {
    EXPECT_FALSE(group.count);
  }
}

TEST(CommunicationCounts, AFewWatchesAreTooFew) {
  Program program;
  program.watches = 1;
  program.run();
  for (std::size_t i = 0; i < 20; ++i) {  // the one line is known to be one
    program.samples.push_back(program.samples.at(i % 2));
  }
  for (const CountGroup& group : both(program.count())) {
    EXPECT_FALSE(group.count);
    EXPECT_NE(group.unknown.find("too few"), std::string::npos) << group.unknown;
  }
}

TEST(CommunicationCounts, ExchangesThatComeAndGoAreNotCounted) {
  Program program;
  program.idle_watches = true;
  program.run();
  for (const CountGroup& group : program.count().groups) {
    EXPECT_FALSE(group.count);
  }
}

TEST(CommunicationCounts, ACounterThatBeginsAnewAllTheTimeIsNone) {
  Program program;
  program.steps_a_ms = 0;
  program.run();
  for (const CountGroup& group : both(program.count())) {
    EXPECT_FALSE(group.count);
  }
}

TEST(CommunicationCounts, WatchesWithGapsAreLeftOut) {
  Program program;
  program.run();
  for (OwnershipTimeline& timeline : program.timelines) {
    timeline.gaps = 1;
  }
  for (const CountGroup& group : both(program.count())) {
    EXPECT_FALSE(group.count);
  }
}

TEST(CommunicationCounts, NothingSeenIsNoGroup) { EXPECT_TRUE(Program{}.count().groups.empty()); }

CountGroup group_of(std::optional<double> count, double error, std::vector<CountedLine> lines,
                    std::string unknown = "") {
  CountGroup group;
  group.count = count;
  group.error = error;
  group.lines = std::move(lines);
  group.unknown = std::move(unknown);
  group.all_lines = 1000;
  return group;
}

/// Communications 1 -> 2, each at its place in `groups`, as one amount.
Amount amount_of(std::vector<CountGroup> groups, const std::vector<CountTable::Place>& place_of) {
  std::vector<OwnershipTimeline> timelines(place_of.size());  // with a communication each
  for (OwnershipTimeline& timeline : timelines) {
    timeline.communications.resize(1);
  }
  CountTable table;
  table.groups = std::move(groups);
  table.make_places(timelines);
  std::vector<Contribution> contributions;
  for (std::uint32_t i = 0; i < timelines.size(); ++i) {
    SeenCommunication& seen = timelines[i].communications[0];
    seen.producer.thread = ThreadId{1};
    seen.consumer.thread = ThreadId{2};
    seen.true_sharing = true;
    table.put(i, &seen, place_of[i]);
    contributions.push_back({&seen, i, Strata::none, 0, 0});
  }
  Expansion expansion;
  expansion.counts = &table;
  const Matrix matrix = matrix_of(contributions, expansion, thread_pair);
  EXPECT_EQ(matrix.size(), 1U);
  EXPECT_FALSE(matrix.at(0).false_sharing.count);
  EXPECT_EQ(matrix.at(0).false_sharing.count_unknown, "none was seen");
  return matrix.at(0).true_sharing;
}

TEST(CountedAmount, IsThePartThatWasSeenOfItsGroup) {
  const Amount amount = amount_of({group_of(1000, 0.1, {{1, 40, 1e9}})}, std::vector<CountTable::Place>(10, {0, 0}));
  ASSERT_TRUE(amount.count);
  EXPECT_DOUBLE_EQ(*amount.count, 250);
  EXPECT_NEAR(amount.count_ci95->low, 225, 0.1);
  EXPECT_NEAR(amount.count_ci95->high, 275, 0.1);
  EXPECT_TRUE(amount.count_unknown.empty());
}

TEST(CountedAmount, WhoseGroupsAreNotAllCountedIsNotKnown) {
  const CountGroup varies = group_of(std::nullopt, 0, {{1, 5, 5}}, "it varies");
  const Amount amount =
      amount_of({group_of(1000, 0.1, {{1, 5, 500}}), varies}, {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}});
  EXPECT_FALSE(amount.count);
  EXPECT_FALSE(amount.count_ci95);
  EXPECT_EQ(amount.count_unknown, "it varies");
}

TEST(CountedAmount, AllowsForAFewThatAreNotCounted) {
  std::vector<CountTable::Place> places(99, {0, 0});
  places.push_back({1, 0});
  const CountGroup varies = group_of(std::nullopt, 0, {{1, 1, 1}}, "it varies");
  const Amount amount = amount_of({group_of(990, 0, {{1, 99, 1e9}}), varies}, places);
  ASSERT_TRUE(amount.count);
  EXPECT_DOUBLE_EQ(*amount.count, 1000);
  EXPECT_NEAR(amount.count_ci95->low, 990, 1e-6);
  EXPECT_NEAR(amount.count_ci95->high, 1010, 1e-6);
}

/// A group of `count` lines alike, each seen and watched so often.
std::vector<CountedLine> lines_alike(std::size_t count, double seen) {
  return std::vector<CountedLine>(count, {1.0 / static_cast<double>(count), seen, seen});
}

TEST(CountedAmount, IsThePartOfTheLinesAndNotOfTheWatches) {
  std::vector<CountedLine> lines = lines_alike(20, 4);
  lines[0].seen = lines[0].watches = 400;  // one that costs more than the others
  std::vector<CountTable::Place> places(400, {0, 0});
  for (std::uint32_t line = 1; line < 10; ++line) {
    places.insert(places.end(), 4, {0, line});
  }
  const Amount amount = amount_of({group_of(1000, 0.05, lines)}, places);
  ASSERT_TRUE(amount.count) << amount.count_unknown;
  EXPECT_NEAR(*amount.count, 500, 1e-6);
  EXPECT_GT(amount.count_ci95->high - *amount.count, 25);  // the boundary of the two parts
  EXPECT_LT(amount.count_ci95->high - *amount.count, 100);
}

TEST(CountedAmount, OnLinesThatMixIsLessCertainThanOnLinesThatPart) {
  const auto half_width = [](std::uint32_t stride, std::uint32_t end) {
    std::vector<CountTable::Place> places;
    for (std::uint32_t line = 0; line < end; line += stride) {
      places.push_back({0, line});
    }
    const Amount amount = amount_of({group_of(1000, 0.01, lines_alike(200, 1))}, places);
    EXPECT_TRUE(amount.count) << amount.count_unknown;
    EXPECT_NEAR(amount.count.value_or(0), 500, 1e-6);
    return amount.count_ci95 ? amount.count_ci95->high - *amount.count : 0;
  };
  const double mixed = half_width(2, 200);  // as often as by chance, or more
  EXPECT_GT(mixed, 3 * half_width(1, 100));
  EXPECT_NEAR(mixed, 1000 * 1.96 * std::sqrt(0.5 / 200), 20);
}

TEST(CountedAmount, OfAFewWatchesThatHappenToBeAlikeIsNotTold) {
  const auto amount = [](std::size_t watches) {
    const auto seen = static_cast<double>(watches);
    return amount_of({group_of(1000, 0.1, {{1, seen, seen}})}, std::vector<CountTable::Place>(watches, {0, 0}));
  };
  EXPECT_TRUE(amount(20).count);
  EXPECT_FALSE(amount(3).count);
  EXPECT_EQ(amount(3).count_unknown, too_little_seen);
  EXPECT_FALSE(amount(3).count_ci95);
}

}  // namespace
}  // namespace crosstalk::attribution::communication_counts_test
