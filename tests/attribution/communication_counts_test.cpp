// SPDX-License-Identifier: Apache-2.0
// Programs whose exchanges are known, told as the rows that a profile of them would hold.
#include "attribution/communication_counts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "attribution/estimator.h"
#include "rows.h"

namespace crosstalk::attribution {
namespace {

using namespace test;

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t consumer_ip = load_ip - 4;

/// Two threads, 1 and 2, that take turns at a line: each loads it, then stores to it. A watch is opened each 10 ms and
/// sees six takings; what lies between them is left to the test.
struct Program {
  std::uint64_t watches = 100, runs = 6, lines = 1;
  std::uint64_t cycle_ns = 60'000;  // while it is watched, from a thread's taking to its next
  std::uint64_t steps_a_ms = 500;   // of the counter, watched or not
  std::function<std::uint64_t(std::uint64_t)> steps_of_cycle = [](std::uint64_t) { return 1; };
  bool idle_watches = false;  // every other pair of watches sees nothing
  std::uint64_t horizon_ns = 20 * ms;

  std::vector<profile::WatchRow> watch_rows;
  std::vector<profile::TrapRow> trap_rows;
  std::vector<profile::SampleRow> samples;
  std::vector<WatchStory> stories;

  void run() {
    for (std::uint64_t w = 0; w < watches; ++w) {
      watch(w);
    }
    for (std::size_t w = 0, next = 0; w < watch_rows.size(); ++w) {
      const std::size_t begin = next;
      while (next < trap_rows.size() && trap_rows[next].watch == watch_rows[w].id) {
        ++next;
      }
      stories.push_back(watch_story(watch_rows[w], std::span(trap_rows).subspan(begin, next - begin), threads,
                                    [](Moment, std::uint64_t ip) -> std::optional<symbolizer::MemoryAccess> {
                                      return instruction(ip == load_ip ? AccessKind::load : AccessKind::store);
                                    }));
    }
  }

  [[nodiscard]] CountTable count() const {
    ConsumerSamples consumers(stories);
    for (const profile::SampleRow& sample : samples) {
      consumers.add(sample);
    }
    return count_communications({watch_rows, trap_rows, stories, consumers, 12'000});
  }

 private:
  void watch(std::uint64_t w) {
    const std::uint64_t begin = (w + 1) * 10 * ms;
    profile::WatchRow row;
    row.id = WatchId{static_cast<std::uint32_t>(w + 1)};
    row.thread = ThreadId{static_cast<std::uint32_t>(1 + w % 2)};
    row.line = line + w * 7 % lines * 64;
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
      sample.address = row.line;
      samples.push_back(sample);
    }
    std::uint64_t step = begin * steps_a_ms / ms;
    for (std::uint64_t r = 0; r < (idle_watches && w % 4 < 2 ? 0 : runs); ++r) {
      const std::uint64_t at = begin + 50'000 + r * cycle_ns / 2;
      step += r > 0 && r % 2 == 0 ? steps_of_cycle(w * runs + r) : 0;
      trap(row, static_cast<std::uint32_t>(2 - (w + r) % 2), at, step, false);
      trap(row, static_cast<std::uint32_t>(2 - (w + r) % 2), at + 5'000, step, true);
    }
  }

  void trap(const profile::WatchRow& watch, std::uint32_t thread, std::uint64_t at, std::uint64_t step, bool store) {
    profile::TrapRow row;
    row.watch = watch.id;
    row.thread = ThreadId{thread};
    row.sequence = trap_rows.empty() || trap_rows.back().watch != watch.id ? 0 : trap_rows.back().sequence + 1;
    row.time_ns = at;
    row.ip = store ? store_ip : load_ip;
    row.write_only = store;
    row.registers[Register::rsp] = 0x7000;
    row.registers[Register::rbx] = step;
    trap_rows.push_back(row);
  }

  std::vector<profile::ThreadRow> threads = make_threads(3);
};

/// The only groups: of what thread 1 and what thread 2 consumes.
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
  // Four of six runs of a watch consume what was seen to be stored, and the second does, too.
  EXPECT_EQ(table.groups[0].seen + table.groups[1].seen, 100.0 * 5);
  EXPECT_EQ(table.group_of.size(), 500U);
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
  for (WatchStory& story : program.stories) {
    story.gaps = 1;
  }
  for (const CountGroup& group : both(program.count())) {
    EXPECT_FALSE(group.count);
  }
}

TEST(CommunicationCounts, NothingSeenIsNoGroup) { EXPECT_TRUE(Program{}.count().groups.empty()); }

/// Communications 1 -> 2, each in the group that `groups` says, as one amount.
Amount amount_of(std::vector<CountGroup> groups, const std::vector<std::uint32_t>& group_of) {
  std::vector<SeenCommunication> seen(group_of.size());
  CountTable table;
  table.groups = std::move(groups);
  std::vector<Contribution> contributions;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    seen[i].producer.thread = ThreadId{1};
    seen[i].consumer.thread = ThreadId{2};
    seen[i].true_sharing = true;
    table.group_of[&seen[i]] = group_of[i];
    contributions.push_back({&seen[i], static_cast<std::uint32_t>(i), Strata::none, 0, 0});
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
  const Amount amount = amount_of({{1000, 0.1, "", 40, 1e9}}, std::vector<std::uint32_t>(10, 0));
  ASSERT_TRUE(amount.count);
  EXPECT_DOUBLE_EQ(*amount.count, 250);
  EXPECT_NEAR(amount.count_ci95->low, 225, 0.1);
  EXPECT_NEAR(amount.count_ci95->high, 275, 0.1);
  EXPECT_TRUE(amount.count_unknown.empty());
}

TEST(CountedAmount, WhoseGroupsAreNotAllCountedIsNotKnown) {
  const Amount amount = amount_of({{1000, 0.1, "", 5, 5}, {std::nullopt, 0, "it varies", 5, 5}}, {0, 0, 0, 0, 0, 1});
  EXPECT_FALSE(amount.count);
  EXPECT_FALSE(amount.count_ci95);
  EXPECT_EQ(amount.count_unknown, "it varies");
}

TEST(CountedAmount, AllowsForAFewThatAreNotCounted) {
  std::vector<std::uint32_t> groups(99, 0);
  groups.push_back(1);
  const Amount amount = amount_of({{990, 0, "", 99, 9}, {std::nullopt, 0, "it varies", 1, 1}}, groups);
  ASSERT_TRUE(amount.count);
  EXPECT_DOUBLE_EQ(*amount.count, 1000);
  EXPECT_NEAR(amount.count_ci95->low, 990, 1e-6);
  EXPECT_NEAR(amount.count_ci95->high, 1010, 1e-6);
}

}  // namespace
}  // namespace crosstalk::attribution
