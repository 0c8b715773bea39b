// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/wait_tally.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"

namespace crosstalk::observer::wait_tally_test {
namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t first_call = 0x401000, second_call = 0x401040;

bool is_code(std::uint64_t address) { return address >= 0x400000 && address < 0x500000; }

/// A sleep in a call from `site`, with other words on the stack.
FutexWait wait_at(std::uint64_t futex, std::uint64_t site, std::uint64_t other = 7) {
  FutexWait wait;
  wait.futex = futex;
  wait.call.number = 202;
  wait.call.stack_pointer = 0x7000;
  wait.call.instruction = 0x450000;
  const std::uint64_t words[] = {other, site, other + 1};
  wait.stack.resize(sizeof words);
  std::memcpy(wait.stack.data(), words, sizeof words);
  return wait;
}

class Tally : public testing::Test {
 protected:
  void asleep(std::uint64_t at_ms, FutexWait wait) { tally_.asleep(LookTime{at_ms * ms}, std::move(wait), is_code); }
  WaitTally tally_{LookTime{0}};
};

TEST_F(Tally, ALookStandsForTheTimeSinceTheOneBefore) {
  tally_.awake(LookTime{10 * ms});
  asleep(30, wait_at(0x10, first_call));
  const WaitTally::Told told = tally_.take();
  ASSERT_EQ(told.places.size(), 1U);
  EXPECT_EQ(told.places[0].wait.futex, 0x10U);
  EXPECT_EQ(told.places[0].looks.looked_ns, 20 * ms);
  EXPECT_EQ(told.places[0].looks.looks, 1U);
  EXPECT_EQ(told.places[0].looks.spread_ns(), 20 * ms);
  EXPECT_EQ(told.all.looked_ns, 30 * ms);
  EXPECT_EQ(told.all.looks, 2U);
}

TEST_F(Tally, ASleepThatLastsIsCertain) {
  asleep(10, wait_at(0x10, first_call));
  tally_.still_asleep(LookTime{20 * ms});
  tally_.still_asleep(LookTime{50 * ms});
  const WaitTally::Told told = tally_.take();
  ASSERT_EQ(told.places.size(), 1U);
  EXPECT_EQ(told.places[0].looks.looked_ns, 50 * ms);
  EXPECT_EQ(told.places[0].looks.spread_ns(), 10 * ms) << "but for its begin";
  EXPECT_EQ(told.all.spread_ns(), 10 * ms);
}

TEST_F(Tally, OtherSleepIsSleepToo) {
  tally_.asleep_elsewhere(LookTime{10 * ms});
  EXPECT_TRUE(tally_.is_asleep());
  tally_.still_asleep(LookTime{30 * ms});
  asleep(40, wait_at(0x10, first_call));
  tally_.awake(LookTime{45 * ms});
  const WaitTally::Told told = tally_.take();
  ASSERT_EQ(told.places.size(), 1U);
  EXPECT_EQ(told.places[0].looks.looked_ns, 10 * ms);
  EXPECT_EQ(told.asleep.looked_ns, 40 * ms);
  EXPECT_EQ(told.asleep.looks, 3U);
  EXPECT_EQ(told.all.looked_ns, 45 * ms);
}

TEST(SleptTime, IsWhatTheSchedulerDoesNotCount) {
  WaitTally tally(LookTime{100 * ms, 50 * ms});
  tally.awake(LookTime{110 * ms, 54 * ms});
  tally.asleep_elsewhere(LookTime{130 * ms, 60 * ms});
  EXPECT_EQ(tally.take().slept_ns, std::int64_t{20 * ms});
  tally.awake(LookTime{140 * ms, 75 * ms});
  EXPECT_EQ(tally.take().slept_ns, -std::int64_t{5 * ms}) << "it is told a tick late";
  tally.awake(LookTime{150 * ms});
  tally.awake(LookTime{160 * ms, 80 * ms});
  EXPECT_FALSE(tally.take().slept_ns) << "not all of it is known";
  tally.awake(LookTime{170 * ms, 81 * ms});
  EXPECT_EQ(tally.take().slept_ns, std::int64_t{9 * ms});
}

TEST_F(Tally, CallsFromOneFunctionAreToldApartByTheirReturnAddresses) {
  asleep(10, wait_at(0x10, first_call));
  asleep(20, wait_at(0x10, second_call));
  asleep(30, wait_at(0x10, first_call, 99));
  asleep(40, wait_at(0x20, first_call));
  const WaitTally::Told told = tally_.take();
  ASSERT_EQ(told.places.size(), 3U);
  EXPECT_EQ(told.places[0].looks.looks, 2U) << "what else is on the stack says nothing";
  EXPECT_EQ(told.places[1].looks.looks, 1U);
  EXPECT_EQ(told.places[2].wait.futex, 0x20U);
}

TEST_F(Tally, ASleepWithoutAStackIsAtTheLastPlaceLikeIt) {
  asleep(10, wait_at(0x10, first_call));
  FutexWait bare = wait_at(0x10, first_call);
  bare.stack.clear();
  asleep(20, bare);
  bare.futex = 0x20;
  asleep(30, bare);
  bare.futex = 0x30;
  asleep(40, bare);
  asleep(50, wait_at(0x30, second_call));
  asleep(60, wait_at(0x30, first_call));
  const WaitTally::Told told = tally_.take();
  ASSERT_EQ(told.places.size(), 4U);
  EXPECT_EQ(told.places[0].looks.looks, 2U);
  EXPECT_TRUE(told.places[1].wait.stack.empty());
  EXPECT_EQ(told.places[2].looks.looks, 2U) << "the first one with a stack lends it";
  EXPECT_FALSE(told.places[2].wait.stack.empty());
  EXPECT_EQ(told.places[3].looks.looks, 1U);
}

TEST_F(Tally, APresentSleepGoesOnAfterItWasTold) {
  asleep(10, wait_at(0x10, first_call));
  (void)tally_.take();
  EXPECT_TRUE(tally_.is_asleep());
  EXPECT_TRUE(tally_.take().places.empty()) << "nothing new";
  tally_.still_asleep(LookTime{30 * ms});
  const WaitTally::Told told = tally_.take();
  ASSERT_EQ(told.places.size(), 1U);
  EXPECT_EQ(told.places[0].wait.futex, 0x10U);
  EXPECT_EQ(told.places[0].looks.looked_ns, 20 * ms);
  EXPECT_EQ(told.all.looked_ns, 20 * ms);
  tally_.awake(LookTime{40 * ms});
  EXPECT_FALSE(tally_.is_asleep());
  EXPECT_TRUE(tally_.take().places.empty());
}

TEST_F(Tally, IsFullOfSoManyPlaces) {
  for (std::uint64_t i = 0; i < WaitTally::most_places; ++i) {
    EXPECT_FALSE(tally_.is_full());
    asleep(i + 1, wait_at(0x10 + i, first_call));
  }
  EXPECT_TRUE(tally_.is_full());
  EXPECT_EQ(tally_.take().places.size(), WaitTally::most_places);
  EXPECT_FALSE(tally_.is_full());
}

/// A thread that is asleep for 3 of each 10 ms, looked at after pauses drawn from 5 to 15 ms.
TEST_F(Tally, TheEstimateIsRightWithinItsSpread) {
  std::uint64_t random = random_state(1, 2);
  std::uint64_t now_ns = 0;
  while (now_ns < 20'000 * ms) {
    now_ns += 5 * ms + next_random(random) % (10 * ms);
    if (now_ns % (10 * ms) < 3 * ms) {
      tally_.asleep(LookTime{now_ns}, wait_at(0x10, first_call), is_code);
    } else {
      tally_.awake(LookTime{now_ns});
    }
  }
  const WaitTally::Told told = tally_.take();
  ASSERT_EQ(told.places.size(), 1U);
  const auto found_ns = static_cast<double>(told.places[0].looks.looked_ns);
  EXPECT_NEAR(found_ns, 0.3 * static_cast<double>(now_ns), 3 * static_cast<double>(told.places[0].looks.spread_ns()));
  EXPECT_LT(static_cast<double>(told.places[0].looks.spread_ns()), 0.05 * found_ns);
  EXPECT_EQ(told.all.looked_ns, now_ns);
}

}  // namespace
}  // namespace crosstalk::observer::wait_tally_test
