// SPDX-License-Identifier: Apache-2.0
#include "attribution/exchange_clock.h"

#include <gtest/gtest.h>

namespace crosstalk::attribution {
namespace {

constexpr auto rbx = static_cast<std::size_t>(Register::rbx);
constexpr auto rsp = static_cast<std::size_t>(Register::rsp);
constexpr std::size_t spilled = state_registers + 5;  // [rsp + 40]

Standing standing(std::uint64_t time_ns, std::size_t word, std::uint64_t value, std::uint64_t stack = 0x7000) {
  Standing result;
  result.time_ns = time_ns;
  result.has_frame = true;
  result.word.at(rsp) = stack;
  result.word.at(word) = value;
  return result;
}

Cycle cycle(std::size_t word, std::uint64_t from, std::uint64_t to, std::uint32_t exchanges = 1) {
  return {standing(from, word, from), standing(to, word, to), exchanges};
}

TEST(ExchangeClock, ARegisterThatGoesOnWithTheExchanges) {
  std::vector<Cycle> cycles;
  for (std::uint64_t i = 0; i < 20; ++i) {
    cycles.push_back(cycle(rbx, 1000 * i, 1000 * i + 1));
  }
  const auto clocks = exchange_clocks(cycles);
  ASSERT_EQ(clocks.size(), 1U);
  EXPECT_EQ(clocks[0].word, rbx);
  EXPECT_EQ(clocks[0].step, 1);
  EXPECT_EQ(clocks[0].alike, 20U);
  EXPECT_DOUBLE_EQ(clocks[0].exchanges, 1);
}

TEST(ExchangeClock, AWordOfTheStackThatCountsDownInSteps) {
  std::vector<Cycle> cycles;
  for (std::uint64_t i = 20; i > 0; --i) {
    cycles.push_back(cycle(spilled, 1000 * i, 1000 * i - 32, 2));
  }
  const auto clocks = exchange_clocks(cycles);
  ASSERT_EQ(clocks.size(), 1U);
  EXPECT_EQ(clocks[0].word, spilled);
  EXPECT_EQ(clocks[0].step, -32);
  EXPECT_DOUBLE_EQ(clocks[0].exchanges, 2);
}

TEST(ExchangeClock, AWordOfAStackThatIsNotKnownIsNone) {
  std::vector<Cycle> cycles;
  for (std::uint64_t i = 0; i < 20; ++i) {
    cycles.push_back(cycle(spilled, 1000 * i, 1000 * i + 1));
    cycles.back().end.has_frame = false;
  }
  EXPECT_TRUE(exchange_clocks(cycles).empty());
}

TEST(ExchangeClock, AnExchangeThatIsMissedNowAndThenLowersTheMean) {
  std::vector<Cycle> cycles;
  for (std::uint64_t i = 0; i < 40; ++i) {
    cycles.push_back(cycle(rbx, 1000 * i, 1000 * i + (i % 20 == 0 ? 2 : 1)));
  }
  const auto clocks = exchange_clocks(cycles);
  ASSERT_EQ(clocks.size(), 1U);
  EXPECT_EQ(clocks[0].alike, 38U);
  EXPECT_DOUBLE_EQ(clocks[0].exchanges, 40.0 / 42);
  EXPECT_DOUBLE_EQ(clocks[0].usual, 1);
}

TEST(ExchangeClock, IterationsThatVaryAreNoClock) {
  std::vector<Cycle> cycles;
  for (std::uint64_t i = 0; i < 40; ++i) {
    cycles.push_back(cycle(rbx, 1000 * i, 1000 * i + 1 + i % 3));
  }
  EXPECT_TRUE(exchange_clocks(cycles).empty());
}

TEST(ExchangeClock, AWordThatStandsStillIsNoClock) {
  const std::vector<Cycle> cycles(20, cycle(rbx, 5, 5));
  EXPECT_TRUE(exchange_clocks(cycles).empty());
}

TEST(ExchangeClock, WithoutExchangesThereIsNone) {
  EXPECT_TRUE(exchange_clocks(std::vector<Cycle>(20, cycle(rbx, 5, 6, 0))).empty());
}

TEST(ExchangeClock, FramesThatDifferSayNothing) {
  std::vector<Cycle> cycles;
  for (std::uint64_t i = 0; i < 20; ++i) {
    cycles.push_back(cycle(rbx, 1000 * i, 1000 * i + 1));
    cycles.back().end.word.at(rsp) = 0x6000;
  }
  EXPECT_TRUE(exchange_clocks(cycles).empty());
}

TEST(ExchangeClock, TooFewCyclesAreNone) {
  EXPECT_TRUE(exchange_clocks(std::vector<Cycle>(least_cycles - 1, cycle(rbx, 5, 6))).empty());
  EXPECT_EQ(exchange_clocks(std::vector<Cycle>(least_cycles, cycle(rbx, 5, 6))).size(), 1U);
}

TEST(WithAgreeing, OtherInstructionsReadTheSameCounterWhereTheyAgree) {
  const ExchangeClock clock{rbx, 1, 20, 20, 1, 1};
  const std::vector<Standing> own{standing(100, rbx, 10), standing(500, rbx, 50), standing(900, rbx, 90)};
  const std::vector<std::vector<Standing>> others{
      {standing(50, rbx, 5), standing(200, rbx, 20), standing(300, rbx, 30), standing(510, rbx, 49)},
      {standing(210, rbx, 7000), standing(310, rbx, 8000), standing(410, rbx, 9000)},  // another variable
      {standing(60, rbx, 6), standing(250, rbx, 25), standing(350, rbx, 35)},          // too few to tell
      {standing(220, rbx, 22, 0x6000), standing(320, rbx, 32, 0x6000), standing(420, rbx, 42, 0x6000)}};
  const auto all = with_agreeing(clock, own, others);
  ASSERT_EQ(all.size(), 7U);
  EXPECT_EQ(all.front().time_ns, 50U);
  EXPECT_EQ(all[5].word.at(rbx), 50U);  // a step behind, and later
  const auto way = way_of(clock, all);
  ASSERT_TRUE(way);
  EXPECT_EQ(way->steps, 85);
  EXPECT_EQ(way->lost_ns, 0);
}

TEST(Way, StepsAreCountedOverTheWholeRun) {
  const ExchangeClock clock{rbx, 4, 20, 20, 1, 1};
  const std::vector<Standing> standings{standing(100, rbx, 400), standing(200, rbx, 800), standing(400, rbx, 1600)};
  const auto way = way_of(clock, standings);
  ASSERT_TRUE(way);
  EXPECT_EQ(way->steps, 300);
  EXPECT_EQ(way->begin_ns, 100U);
  EXPECT_EQ(way->end_ns, 400U);
  EXPECT_EQ(way->lost_ns, 0);
  EXPECT_DOUBLE_EQ(way->widest, 2.0 / 3);
  EXPECT_DOUBLE_EQ(way->widest_time, 2.0 / 3);
}

TEST(Way, WhereACounterBeginsAnewTheTimeIsLost) {
  const ExchangeClock clock{rbx, 1, 20, 20, 1, 1};
  const std::vector<Standing> standings{standing(100, rbx, 500), standing(200, rbx, 600), standing(250, rbx, 3),
                                        standing(300, rbx, 53)};
  const auto way = way_of(clock, standings);
  ASSERT_TRUE(way);
  EXPECT_EQ(way->steps, 150);
  EXPECT_EQ(way->net, -447);
  EXPECT_EQ(way->lost_ns, 50);
}

TEST(Way, OtherFramesAreLeftOut) {
  const ExchangeClock clock{rbx, 1, 20, 20, 1, 1};
  const std::vector<Standing> standings{standing(100, rbx, 5), standing(200, rbx, 900, 0x6000), standing(300, rbx, 9)};
  const auto way = way_of(clock, standings);
  ASSERT_TRUE(way);
  EXPECT_EQ(way->steps, 4);
  EXPECT_FALSE(way_of(clock, std::span(standings).first(1)));
  EXPECT_FALSE(way_of(clock, {}));
}

}  // namespace
}  // namespace crosstalk::attribution
