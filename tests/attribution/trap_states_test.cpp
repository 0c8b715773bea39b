// SPDX-License-Identifier: Apache-2.0
#include "attribution/counts/trap_states.h"

#include <gtest/gtest.h>

namespace crosstalk::attribution::test::trap_states_test {
namespace {

constexpr std::uint64_t far = 1ULL << 40U;
constexpr std::size_t counter = 3, jumping = 4, constant = 5;
constexpr std::size_t in_frame = state_registers + 2;

profile::TrapRow trap(std::uint64_t number, bool with_frame) {
  profile::TrapRow row;
  row.time_ns = 1000 + number;
  row.registers.value[counter] = 100 - number;
  row.registers.value[jumping] = number < 1500 ? number : far + number;
  row.registers.value[constant] = 7;
  if (with_frame) {
    row.frame.emplace().fill(number);
  }
  return row;
}

// Columns begin when a word first changes, and grow wider when it goes far.
TEST(TrapStates, GiveBackWhatWasAdded) {
  TrapStates states;
  for (std::uint64_t number = 0; number < 3000; ++number) {
    EXPECT_EQ(states.add(trap(number, number >= 1000)), number);
  }
  EXPECT_EQ(states.size(), 3000U);
  EXPECT_TRUE(states.is_constant(constant));
  EXPECT_FALSE(states.is_constant(counter));
  for (std::uint32_t number = 0; number < 3000; ++number) {
    const profile::TrapRow row = trap(number, true);
    ASSERT_EQ(states.time_ns(number), row.time_ns);
    ASSERT_EQ(states.word(number, counter), row.registers.value[counter]);
    ASSERT_EQ(states.word(number, jumping), row.registers.value[jumping]);
    ASSERT_EQ(states.word(number, constant), 7U);
    ASSERT_EQ(states.words(number), number >= 1000 ? state_words : state_registers);
    if (number >= 1000) {
      ASSERT_EQ(states.word(number, in_frame), number);
    }
  }
}

}  // namespace
}  // namespace crosstalk::attribution::test::trap_states_test
