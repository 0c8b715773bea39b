// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/stack_allowance.h"

#include <gtest/gtest.h>

namespace crosstalk::watch_policy::stack_allowance_test {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

/// Returns how many stacks are taken if one is asked for every millisecond of [begin, end).
int taken(std::uint64_t begin, std::uint64_t end, std::uint32_t rate, std::uint64_t& paid_until_ns) {
  int count = 0;
  for (std::uint64_t now = begin; now < end; now += second / 1000) {
    if (const auto paid = pay_for_stack(paid_until_ns, now, rate)) {
      paid_until_ns = *paid;
      ++count;
    }
  }
  return count;
}

TEST(StackAllowance, ASecondsWorthAtOnceAndThenSoManyASecond) {
  std::uint64_t paid_until_ns = 0;
  EXPECT_EQ(taken(100 * second, 101 * second, 20, paid_until_ns), 39);
  EXPECT_EQ(taken(101 * second, 111 * second, 20, paid_until_ns), 200);
}

TEST(StackAllowance, WhatWasNotTakenIsNotKeptForLong) {
  std::uint64_t paid_until_ns = 0;
  taken(100 * second, 101 * second, 20, paid_until_ns);
  EXPECT_EQ(taken(200 * second, 201 * second, 20, paid_until_ns), 39);
}

TEST(StackAllowance, NoneIsNone) { EXPECT_FALSE(pay_for_stack(0, 100 * second, 0)); }

}  // namespace
}  // namespace crosstalk::watch_policy::stack_allowance_test
