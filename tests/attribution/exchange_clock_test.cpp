// SPDX-License-Identifier: Apache-2.0
#include "attribution/counts/exchange_clock.h"

#include <gtest/gtest.h>

namespace crosstalk::attribution::exchange_clock_test {
namespace {

constexpr auto rbx = static_cast<std::size_t>(Register::rbx);
constexpr std::size_t spilled = state_registers + 5;  // [rsp + 40]

/// Makes standings, and keeps the states that they refer to.
class ExchangeClockTest : public testing::Test {
 protected:
  Standing standing(std::uint64_t time_ns, std::size_t word, std::uint64_t value, std::uint64_t stack = 0x7000,
                    bool has_frame = true) {
    profile::TrapRow row;
    row.time_ns = time_ns;
    row.registers[Register::rsp] = stack;
    if (has_frame) {
      row.frame.emplace();
    }
    if (word < state_registers) {
      row.registers.value.at(word) = value;
    } else if (has_frame) {
      row.frame->at(word - state_registers) = value;
    }
    return {states_, states_.add(row)};
  }
  Cycle cycle(std::size_t word, std::uint64_t from, std::uint64_t to, std::uint32_t exchanges = 1) {
    standing(from, word, from), standing(to, word, to);
    return between_last_two(exchanges);
  }
  Cycle between_last_two(std::uint32_t exchanges = 1) {
    return {&states_, states_.size() - 2, states_.size() - 1, exchanges, 0};
  }

 private:
  TrapStates states_;
};
using WithAgreeing = ExchangeClockTest;
using AdvanceTest = ExchangeClockTest;

TEST_F(ExchangeClockTest, ARegisterThatGoesOnWithTheExchanges) {
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

TEST_F(ExchangeClockTest, AWordOfTheStackThatCountsDownInSteps) {
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

TEST_F(ExchangeClockTest, AWordOfAStackThatIsNotKnownIsNone) {
  std::vector<Cycle> cycles;
  for (std::uint64_t i = 0; i < 20; ++i) {
    standing(i, spilled, 1000), standing(i, spilled, 0, 0x7000, false);
    cycles.push_back(between_last_two());
  }
  EXPECT_TRUE(exchange_clocks(cycles).empty());
}

TEST_F(ExchangeClockTest, AnExchangeThatIsMissedNowAndThenLowersTheMean) {
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

TEST_F(ExchangeClockTest, AsManyTimesTheStepsAndTheExchangesAreAlike) {
  std::vector<Cycle> cycles;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const bool longer = i % 4 == 0;
    cycles.push_back(cycle(rbx, 1000 * i, 1000 * i + (longer ? 6 : 3), longer ? 2 : 1));
  }
  const auto clocks = exchange_clocks(cycles);
  ASSERT_EQ(clocks.size(), 1U);
  EXPECT_EQ(clocks[0].step, 3);
  EXPECT_EQ(clocks[0].alike, 40U);
}

TEST_F(ExchangeClockTest, CyclesThatWereNotSeenToTheirEndAreLikeNone) {
  const std::vector<Cycle> cycles(20, cycle(rbx, 5, 8));
  EXPECT_EQ(exchange_clocks(cycles, least_alike, 2).at(0).cycles, 22U);
  EXPECT_TRUE(exchange_clocks(cycles, least_alike, 3).empty());
}

TEST_F(ExchangeClockTest, HalfOfTheCyclesAreFoundWhateverLiesBetween) {
  std::vector<Cycle> cycles;
  for (std::uint64_t i = 0; i < 40; ++i) {  // 7, 20, 7, 21, 7, 22, ...
    cycles.push_back(cycle(rbx, 1000 * i, 1000 * i + (i % 2 == 0 ? 7 : 20 + i)));
  }
  EXPECT_TRUE(exchange_clocks(cycles, 0.51).empty());
  const auto clocks = exchange_clocks(cycles, 0.5);
  ASSERT_EQ(clocks.size(), 1U);
  EXPECT_EQ(clocks[0].step, 7);
  EXPECT_EQ(clocks[0].alike, 20U);
  EXPECT_EQ(clocks[0].cycles, 40U);
}

TEST_F(ExchangeClockTest, OfTwoHalvesTheLesserStepIsTaken) {
  std::vector<Cycle> cycles;
  for (std::uint64_t i = 0; i < 40; ++i) {
    cycles.push_back(cycle(rbx, 1000 * i, 1000 * i + (i % 2 == 0 ? 9 : 6)));
  }
  const auto clocks = exchange_clocks(cycles, 0.5);
  ASSERT_EQ(clocks.size(), 1U);
  EXPECT_EQ(clocks[0].step, 6);
}

TEST_F(ExchangeClockTest, IterationsThatVaryAreNoClock) {
  std::vector<Cycle> cycles;
  for (std::uint64_t i = 0; i < 40; ++i) {
    cycles.push_back(cycle(rbx, 1000 * i, 1000 * i + 1 + i % 3));
  }
  EXPECT_TRUE(exchange_clocks(cycles).empty());
}

TEST_F(ExchangeClockTest, AWordThatStandsStillIsNoClock) {
  const std::vector<Cycle> cycles(20, cycle(rbx, 5, 5));
  EXPECT_TRUE(exchange_clocks(cycles).empty());
}

TEST_F(ExchangeClockTest, WithoutExchangesThereIsNone) {
  EXPECT_TRUE(exchange_clocks(std::vector<Cycle>(20, cycle(rbx, 5, 6, 0))).empty());
}

TEST_F(ExchangeClockTest, FramesThatDifferSayNothing) {
  std::vector<Cycle> cycles;
  for (std::uint64_t i = 0; i < 20; ++i) {
    standing(i, rbx, 1000 * i), standing(i, rbx, 1000 * i + 1, 0x6000);
    cycles.push_back(between_last_two());
  }
  EXPECT_TRUE(exchange_clocks(cycles).empty());
}

TEST_F(ExchangeClockTest, TooFewCyclesAreNone) {
  EXPECT_TRUE(exchange_clocks(std::vector<Cycle>(least_cycles - 1, cycle(rbx, 5, 6))).empty());
  EXPECT_EQ(exchange_clocks(std::vector<Cycle>(least_cycles, cycle(rbx, 5, 6))).size(), 1U);
}

TEST_F(WithAgreeing, OtherInstructionsReadTheSameCounterWhereTheyAgree) {
  const ExchangeClock clock{rbx, 1, 20, 20, 1, 1};
  const std::vector<Standing> own{standing(100, rbx, 10), standing(500, rbx, 50), standing(900, rbx, 90)};
  const std::vector<std::vector<Standing>> others{
      {standing(50, rbx, 5), standing(200, rbx, 20), standing(300, rbx, 30), standing(510, rbx, 49)},
      {standing(210, rbx, 7000), standing(310, rbx, 8000), standing(410, rbx, 9000)},  // another variable
      {standing(60, rbx, 6), standing(250, rbx, 25), standing(350, rbx, 35)},          // too few to tell
      {standing(220, rbx, 22, 0x6000), standing(320, rbx, 32, 0x6000), standing(420, rbx, 42, 0x6000)}};
  const std::vector<std::span<const Standing>> spans(others.begin(), others.end());
  const auto all = with_agreeing(clock, own, spans);
  ASSERT_EQ(all.size(), 7U);
  EXPECT_EQ(all.front().time_ns, 50U);
  EXPECT_EQ(all[5].value, 50U);  // a step behind, and later
  const auto way = advance_of(clock, all);
  ASSERT_TRUE(way);
  EXPECT_EQ(way->steps, 85);
  EXPECT_EQ(way->lost_ns, 0);
}

TEST_F(AdvanceTest, StepsAreCountedOverTheWholeRun) {
  const ExchangeClock clock{rbx, 4, 20, 20, 1, 1};
  const std::vector<Standing> standings{standing(100, rbx, 400), standing(200, rbx, 800), standing(400, rbx, 1600)};
  const auto way = advance_of(clock, with_agreeing(clock, standings, {}));
  ASSERT_TRUE(way);
  EXPECT_EQ(way->steps, 300);
  EXPECT_EQ(way->begin_ns, 100U);
  EXPECT_EQ(way->end_ns, 400U);
  EXPECT_EQ(way->lost_ns, 0);
  EXPECT_DOUBLE_EQ(way->widest, 2.0 / 3);
  EXPECT_DOUBLE_EQ(way->widest_time, 2.0 / 3);
}

TEST_F(AdvanceTest, StepsBeforeTheFirstReadingAndHowUnevenTheyAre) {
  const ExchangeClock up{rbx, 4, 20, 20, 1, 1};
  const std::vector<Reading> steady{{100, 400}, {200, 800}, {400, 1600}};
  EXPECT_DOUBLE_EQ(advance_of(up, steady)->before, 100);
  EXPECT_DOUBLE_EQ(advance_of(up, steady)->unevenness, 0);
  const std::vector<Reading> uneven{{100, 0}, {200, 800}, {300, 800}};  // 200 steps, then none; 100 each would be even
  EXPECT_DOUBLE_EQ(advance_of(up, uneven)->unevenness, 2 * 100.0 * 100.0 / 200);
  const ExchangeClock down{rbx, -4, 20, 20, 1, 1};
  EXPECT_LT(advance_of(down, std::vector<Reading>{{100, 1600}, {200, 800}})->before, 0);
}

TEST_F(AdvanceTest, WhereACounterBeginsAnewTheTimeIsLost) {
  const ExchangeClock clock{rbx, 1, 20, 20, 1, 1};
  const std::vector<Standing> standings{standing(100, rbx, 500), standing(200, rbx, 600), standing(250, rbx, 3),
                                        standing(300, rbx, 53)};
  const auto way = advance_of(clock, with_agreeing(clock, standings, {}));
  ASSERT_TRUE(way);
  EXPECT_EQ(way->steps, 150);
  EXPECT_EQ(way->net, -447);
  EXPECT_EQ(way->lost_ns, 50);
}

TEST_F(AdvanceTest, OtherFramesAreLeftOut) {
  const ExchangeClock clock{rbx, 1, 20, 20, 1, 1};
  const std::vector<Standing> standings{standing(100, rbx, 5), standing(200, rbx, 900, 0x6000), standing(300, rbx, 9)};
  const auto way = advance_of(clock, with_agreeing(clock, standings, {}));
  ASSERT_TRUE(way);
  EXPECT_EQ(way->steps, 4);
  EXPECT_FALSE(advance_of(clock, with_agreeing(clock, std::span(standings).first(1), {})));
  EXPECT_FALSE(advance_of(clock, {}));
}

}  // namespace
}  // namespace crosstalk::attribution::exchange_clock_test
