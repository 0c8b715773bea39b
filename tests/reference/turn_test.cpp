// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/turn.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace crosstalk::reference::turn_test {
namespace {

TEST(Turn, OneAtATime) {
  constexpr int threads = 4, rounds = 20000;
  Turn turn;
  std::vector<Turn::Seat> seats(threads);
  std::uint64_t shared = 0;  // not atomic: the turn guards it
  std::vector<std::thread> crew;
  crew.reserve(threads);
  for (Turn::Seat& seat : seats) {
    crew.emplace_back([&turn, &seat, &shared] {
      for (int n = 0; n < rounds; ++n) {
        ASSERT_TRUE(turn.enter(seat));
        ++shared;
        Turn::leave(seat);
        if (n % 50 == 0) {
          turn.pass(seat);
        }
      }
      turn.release(seat);
    });
  }
  for (auto& thread : crew) {
    thread.join();
  }
  EXPECT_EQ(shared, std::uint64_t{threads} * rounds);
}

TEST(Turn, StaysWithoutOthers) {
  Turn turn;
  Turn::Seat seat;
  ASSERT_TRUE(turn.enter(seat));
  Turn::leave(seat);
  turn.pass(seat);
  ASSERT_TRUE(turn.enter(seat));
  Turn::leave(seat);
  EXPECT_EQ(turn.stolen(), 0U);
}

TEST(Turn, ASleeperLosesIt) {
  Turn turn;
  Turn::Seat sleeper, other;
  std::atomic<bool> has_it{false}, done{false};
  std::thread asleep([&] {
    ASSERT_TRUE(turn.enter(sleeper));
    Turn::leave(sleeper);
    has_it = true;
    has_it.notify_all();
    done.wait(false);  // without giving the turn away
    ASSERT_TRUE(turn.enter(sleeper)) << "once the other has released it";
    Turn::leave(sleeper);
  });
  has_it.wait(false);
  ASSERT_TRUE(turn.enter(other));
  EXPECT_EQ(turn.stolen(), 1U);
  Turn::leave(other);
  turn.release(other);
  done = true;
  done.notify_all();
  asleep.join();
}

TEST(Turn, WhoIsBusyIsWaitedFor) {
  Turn turn;
  Turn::Seat busy, other;
  std::atomic<bool> has_it{false}, finished{false};
  std::thread worker([&] {
    ASSERT_TRUE(turn.enter(busy));
    has_it = true;
    has_it.notify_all();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    finished = true;
    Turn::leave(busy);
  });
  has_it.wait(false);
  ASSERT_TRUE(turn.enter(other));
  EXPECT_TRUE(finished);
  Turn::leave(other);
  worker.join();
}

TEST(Turn, TheEndWakesWhoWaits) {
  Turn turn;
  Turn::Seat first, second;
  ASSERT_TRUE(turn.enter(first));
  std::atomic<bool> refused{false};
  std::thread waits([&] { refused = !turn.enter(second); });
  turn.end();
  waits.join();
  EXPECT_TRUE(refused);
  EXPECT_EQ(turn.stolen(), 0U);
}

}  // namespace
}  // namespace crosstalk::reference::turn_test
