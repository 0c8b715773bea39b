// SPDX-License-Identifier: Apache-2.0
// The simulator itself: the truth by its definition, and the collector's rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/simulation/run.h"
#include "tests/simulation/sample_at.h"
#include "tests/simulation/watching.h"

namespace crosstalk::simulation::simulation_test {
namespace {

constexpr Access load_of(std::uint32_t word) { return {0, word, AccessKind::load}; }
constexpr Access store_to(std::uint32_t word) { return {0, word, AccessKind::store}; }

TEST(SharedLine, AReadAfterAnothersStoreIsACommunicationOnce) {
  SharedLine line(2);
  EXPECT_FALSE(line.transfer(1, load_of(0)));
  line.touch(0, store_to(0));
  const auto transfer = line.transfer(1, load_of(0));
  ASSERT_TRUE(transfer);
  EXPECT_EQ(transfer->producer, 0U);
  EXPECT_TRUE(transfer->true_sharing);
  line.touch(1, load_of(0));
  EXPECT_FALSE(line.transfer(1, load_of(0)));
  EXPECT_FALSE(line.transfer(0, store_to(0)));
  EXPECT_TRUE(line.invalidates(0, store_to(0)));
}

TEST(SharedLine, AnotherWordIsFalseSharing) {
  SharedLine line(2);
  line.touch(0, store_to(3));
  EXPECT_FALSE(line.transfer(1, load_of(0))->true_sharing);
  EXPECT_TRUE(line.transfer(1, load_of(3))->true_sharing);
}

TEST(SharedLine, OnlyWhatTheLastStorerStoredSinceCountsAsTrue) {
  SharedLine line(3);
  line.touch(0, store_to(0));
  line.touch(2, store_to(5));
  const auto transfer = line.transfer(1, load_of(0));
  ASSERT_TRUE(transfer);
  EXPECT_EQ(transfer->producer, 2U);
  EXPECT_FALSE(transfer->true_sharing);
}

TEST(SharedLine, AnOwnAccessForgetsWhatCameBefore) {
  SharedLine line(2);
  line.touch(0, store_to(0));
  line.touch(1, load_of(4));
  line.touch(0, store_to(6));
  EXPECT_FALSE(line.transfer(1, load_of(0))->true_sharing);
}

TEST(Watching, FollowsRunsOfOwners) {
  Observer observer;
  Watching watching(observer, 3, word_bytes, 1);
  auto sample = sample_at(0, 7, 2, 1000);
  watching.sample(sample, sample.cpu_ns);
  ASSERT_NE(sample.flags & profile::sample_armed, 0);
  EXPECT_EQ(watching.access(0, {7, 2, AccessKind::load}, 1100), 0U);   // its own run: only stores matter
  EXPECT_EQ(watching.access(1, {8, 2, AccessKind::store}, 1200), 0U);  // another line
  EXPECT_EQ(watching.access(1, {7, 2, AccessKind::load}, 1300), 1U);
  EXPECT_EQ(watching.access(1, {7, 2, AccessKind::load}, 1400), 0U);
  EXPECT_EQ(watching.access(1, {7, 2, AccessKind::store}, 1500), 1U);
  EXPECT_EQ(watching.access(1, {7, 2, AccessKind::store}, 1600), 0U);
  EXPECT_EQ(watching.access(0, {7, 2, AccessKind::load}, 1700), 1U);
  watching.finish(2000);
  const auto traps = watching.take_traps();
  ASSERT_EQ(traps.size(), 3U);
  EXPECT_FALSE(traps[0].write_only);
  EXPECT_TRUE(traps[1].write_only);
  EXPECT_EQ(traps[2].thread.value, 0U);
}

TEST(Watching, ClosesWhenFullOrAfterItsTime) {
  Observer observer;
  Watching watching(observer, 2, word_bytes, 1);
  auto sample = sample_at(0, 1, 0, 1000);
  watching.sample(sample, sample.cpu_ns);
  for (std::uint32_t i = 0; i < 20; ++i) {
    watching.access(1 - i % 2, {1, 0, AccessKind::load_store}, 2000 + i);
  }
  auto another = sample_at(0, 2, 0, 10'000);
  watching.sample(another, another.cpu_ns);
  watching.pass(10'000 + observer.horizon_ns);
  watching.finish(1e9);
  const auto watches = watching.take_watches();
  ASSERT_EQ(watches.size(), 2U);
  EXPECT_EQ(watches[0].close, profile::CloseReason::full);
  EXPECT_LT(watches[0].close_ns, 2010U);
}

TEST(Watching, AProbeSeesWhatOthersStoreBetweenItsLooks) {
  Observer observer;
  observer.probe = true;
  Watching watching(observer, 2, word_bytes, 1);
  double begin_ns = 0;
  double gap_ns = 0;
  while (gap_ns == 0) {  // a random half of the samples probe
    begin_ns += 100'000;
    ASSERT_LT(begin_ns, 5e6);
    auto sample = sample_at(0, 7, 2, static_cast<std::uint64_t>(begin_ns));
    watching.access(1, {7, 1, AccessKind::store}, begin_ns);
    gap_ns = watching.sample(sample, sample.cpu_ns);
    EXPECT_EQ((sample.flags & profile::sample_armed) != 0, gap_ns > 0);
  }
  EXPECT_EQ(watching.access(1, {7, 3, AccessKind::store}, begin_ns + 1), 0U);
  watching.pass(begin_ns + gap_ns / 2);
  watching.access(1, {7, 4, AccessKind::load}, begin_ns + gap_ns / 2);
  watching.pass(begin_ns + gap_ns);
  watching.access(1, {7, 5, AccessKind::store}, begin_ns + gap_ns);
  watching.finish(begin_ns + 2 * gap_ns);
  const auto watches = watching.take_watches();
  ASSERT_EQ(watches.size(), 1U);
  ASSERT_TRUE(watches[0].probe);
  EXPECT_EQ(watches[0].probe->changed, std::uint64_t{0xff} << 24U);
  EXPECT_EQ(watches[0].probe->gap_ns, gap_ns);
  EXPECT_TRUE(watching.take_traps().empty());
}

TEST(Watching, ASmallBoardForgetsLines) {
  constexpr std::uint32_t lines = 100;
  const auto suspected = [](std::uint32_t slots) {
    Observer observer;
    observer.board_slots = slots;
    Watching watching(observer, 2, word_bytes, 1);
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < 2 * lines; ++i) {
      auto sample = sample_at(i / lines, i % lines, 0, 1000 + i, AccessKind::store);
      watching.sample(sample, sample.cpu_ns);
      count += (sample.flags & profile::sample_suspected) != 0 ? 1 : 0;
    }
    return count;
  };
  EXPECT_GT(suspected(4096), lines * 9 / 10);
  EXPECT_LE(suspected(16), 16U);
}

TEST(Simulate, TheSameSeedGivesTheSameRun) {
  const SimulatedRun a = simulate(scenario("mixed"), 3);
  const SimulatedRun b = simulate(scenario("mixed"), 3);
  const SimulatedRun c = simulate(scenario("mixed"), 4);
  EXPECT_EQ(a.samples.size(), b.samples.size());
  EXPECT_EQ(a.cpu_s, b.cpu_s);
  EXPECT_EQ(a.traps.size(), b.traps.size());
  EXPECT_NE(a.cpu_s, c.cpu_s);
}

TEST(Simulate, PatternsExchangeWhatTheyAreNamedAfter) {
  const auto pairs = [](const char* name) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::array<bool, 2>> result;
    for (const auto& [pair, sorts] : simulate(scenario(name), 1).truth) {
      result[pair] = {sorts[0].count > 0, sorts[1].count > 0};
    }
    return result;
  };
  using Pairs = decltype(pairs(""));
  constexpr std::array<bool, 2> only_false = {true, false}, only_true = {false, true};
  EXPECT_EQ(pairs("ping_pong"),
            (Pairs{{{0, 1}, only_true}, {{1, 0}, only_true}, {{2, 3}, only_true}, {{3, 2}, only_true}}));
  EXPECT_EQ(pairs("false_sharing"),
            (Pairs{{{0, 1}, only_false}, {{1, 0}, only_false}, {{2, 3}, only_false}, {{3, 2}, only_false}}));
  EXPECT_EQ(pairs("ring"), (Pairs{{{0, 1}, only_true}, {{1, 2}, only_true}, {{2, 3}, only_true}, {{3, 0}, only_true}}));
  EXPECT_EQ(pairs("one_writer"), (Pairs{{{0, 1}, only_true}, {{0, 2}, only_true}, {{0, 3}, only_true}}));
  EXPECT_EQ(pairs("all_to_all").size(), 12U);
  EXPECT_TRUE(pairs("private_data").empty());
}

/// Returns the share of samples of accesses to shared lines.
double shared_share(const SimulatedRun& run, std::uint32_t shared_lines) {
  std::size_t shared = 0;
  for (const profile::SampleRow& sample : run.samples) {
    shared += sample.address < address_of(shared_lines) ? 1 : 0;
  }
  return static_cast<double>(shared) / static_cast<double>(run.samples.size());
}

// Skid by a number of accesses changes the sampled access, but not the number of samples of each kind. Skid in time
// does: long accesses are sampled in the place of quick ones.
TEST(Simulate, SkidMovesSamplesToLaterAccesses) {
  const auto share = [](const char* name) {
    return shared_share(simulate(scenario(name), 1), Program(scenario(name)).shared_lines());
  };
  const double exact = share("accesses_ping_pong");
  const double error = std::sqrt(exact * (1 - exact) / 5000);  // each has more than 5000 samples
  EXPECT_NEAR(share("accesses_skid"), exact, 4 * error);
  EXPECT_LT(share("accesses_long_shadow"), exact - 4 * error);
}

TEST(Simulate, SamplesOfFastLoadsAndWithoutAddressesAreNotThere) {
  const auto loads = [](const char* name) {
    const SimulatedRun run = simulate(scenario(name), 1);
    const std::uint64_t end = address_of(Program(scenario(name)).shared_lines());
    return static_cast<double>(std::count_if(run.samples.begin(), run.samples.end(), [&](const auto& sample) {
      return sample.address < end && sample.access == AccessKind::load;
    }));
  };
  EXPECT_GT(loads("accesses_slow_ring"), 50);
  EXPECT_LT(loads("accesses_slow_ring"), 0.6 * loads("accesses_ring"));
  const auto samples = [](const char* name) { return static_cast<double>(simulate(scenario(name), 1).samples.size()); };
  EXPECT_GT(samples("accesses_skid"), 5000);
  EXPECT_NEAR(samples("accesses_no_address") / samples("accesses_skid"), 0.75, 0.03);
}

// In this program a thread stores to its own lines and loads those of another one.
TEST(Simulate, ARecordMayHaveTheAddressOfTheAccessBefore) {
  const auto loads_of_own_lines = [](Mismatch mismatch) {
    Scenario ring = scenario("accesses_ring");
    ring.observer.counting.store_period = 1e12;
    ring.observer.counting.mismatch = mismatch;
    const std::uint32_t lines = ring.parts.front().lines;
    std::size_t count = 0;
    for (const profile::SampleRow& sample : simulate(ring, 1).samples) {
      const std::uint64_t own = address_of(sample.thread.value * lines);
      count += own <= sample.address && sample.address < own + lines * profile::cache_line ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(loads_of_own_lines(Mismatch::nothing), 0U);
  EXPECT_GT(loads_of_own_lines(Mismatch::address), 100U);
}

// In this program each store to a shared line follows its load.
TEST(Simulate, ARecordMayHaveTheInstructionOfTheAccessBefore) {
  const auto kinds = [](Mismatch mismatch) {
    Scenario ping_pong = scenario("accesses_ping_pong");
    ping_pong.observer.counting.load_period = 1e12;
    ping_pong.observer.counting.mismatch = mismatch;
    const std::uint64_t end = address_of(Program(ping_pong).shared_lines());
    std::map<AccessKind, std::size_t> result;
    for (const profile::SampleRow& sample : simulate(ping_pong, 1).samples) {
      result[sample.access] += sample.address < end ? 1 : 0;
    }
    return result;
  };
  auto exact = kinds(Mismatch::nothing);
  EXPECT_GT(exact[AccessKind::store], 100U);
  EXPECT_EQ(exact[AccessKind::load], 0U);
  auto before = kinds(Mismatch::instruction);
  EXPECT_EQ(before[AccessKind::store], 0U);
  EXPECT_GT(before[AccessKind::load], 100U);
}

TEST(Simulate, LostTrapsLeaveGaps) {
  const SimulatedRun run = simulate(scenario("lost_traps"), 1);
  std::size_t gaps = 0;
  for (std::size_t i = 1; i < run.traps.size(); ++i) {
    const bool same = run.traps[i].watch == run.traps[i - 1].watch;
    gaps += run.traps[i].sequence != (same ? run.traps[i - 1].sequence + 1 : 0) ? 1 : 0;
  }
  EXPECT_GT(gaps, run.traps.size() / 40);
  EXPECT_LT(gaps, run.traps.size() / 10);
}

}  // namespace
}  // namespace crosstalk::simulation::simulation_test
