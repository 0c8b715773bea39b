// SPDX-License-Identifier: Apache-2.0
#include "profile/batch_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace crosstalk::profile::batch_queue_test {
namespace {

constexpr int many = 20 * static_cast<int>(BatchQueue<int>::batch_rows) + 7;  // several times round, and a part

TEST(BatchQueue, RowsArriveInOrderOnTheCallersThread) {
  const auto caller = std::this_thread::get_id();
  std::thread::id maker;
  std::vector<int> got;
  const int result = make_and_use<int>(
      [&](const auto& put) {
        maker = std::this_thread::get_id();
        for (int i = 0; i < many; ++i) {
          put(i);
        }
        return 42;
      },
      [&](int row) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        got.push_back(row);
      });
  EXPECT_EQ(result, 42);
  EXPECT_NE(maker, caller);
  ASSERT_EQ(got.size(), static_cast<std::size_t>(many));
  for (int i = 0; i < many; ++i) {
    ASSERT_EQ(got[static_cast<std::size_t>(i)], i);
  }
}

TEST(BatchQueue, NoRowsAreNoTrouble) {
  int used = 0;
  EXPECT_EQ(make_and_use<int>([](const auto& /*put*/) { return 1; }, [&](int) { ++used; }), 1);
  EXPECT_EQ(used, 0);
}

TEST(BatchQueue, TheMakerDoesNotRunAway) {
  constexpr int most_ahead = 5 * static_cast<int>(BatchQueue<int>::batch_rows);
  std::atomic<int> made{0};
  int used = 0;
  const auto make = [&](const auto& put) {
    for (int i = 0; i < many; ++i) {
      ++made;
      put(i);
    }
    return 0;
  };
  make_and_use<int>(make, [&](int row) {
    if (row == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ASSERT_LE(made.load() - row, most_ahead);
    ++used;
  });
  EXPECT_EQ(used, many);
}

TEST(BatchQueue, WhatTheMakerThrowsComesAfterTheRowsBefore) {
  int used = 0;
  const auto make = [](const auto& put) -> int {
    put(1);
    throw std::runtime_error("made no more");
  };
  EXPECT_THROW(make_and_use<int>(make, [&](int) { ++used; }), std::runtime_error);
  EXPECT_EQ(used, 1);
}

TEST(BatchQueue, WhatTheUserThrowsEndsBoth) {
  int made = 0;
  const auto make = [&](const auto& put) {
    for (; made < many; ++made) {
      put(made);
    }
    return 0;
  };
  EXPECT_THROW(make_and_use<int>(make,
                                 [](int row) {
                                   if (row == 5) {
                                     throw std::runtime_error("wants no more");
                                   }
                                 }),
               std::runtime_error);
  EXPECT_EQ(made, many);  // it is not told, and what it puts is dropped
}

}  // namespace
}  // namespace crosstalk::profile::batch_queue_test
