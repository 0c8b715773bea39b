// SPDX-License-Identifier: Apache-2.0
// The texts are those of proc(5).
#include "collectors/observer/sleeping_call.h"

#include <gtest/gtest.h>

namespace crosstalk::observer::sleeping_call_test {
namespace {

constexpr const char* mutex_text = "202 0x55d0c8a2b0c0 0x80 0x2 0x0 0x0 0x7f1fd4d55710 0x7f1fd4d55640 0x7f1fd4e6b5c1\n";

TEST(SleepingCall, HasItsArgumentsAndWhereItIs) {
  const auto call = parse_sleeping_call(mutex_text);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->number, 202U);
  EXPECT_EQ(call->arguments[0], 0x55d0c8a2b0c0U);
  EXPECT_EQ(call->arguments[5], 0x7f1fd4d55710U);
  EXPECT_EQ(call->stack_pointer, 0x7f1fd4d55640U);
  EXPECT_EQ(call->instruction, 0x7f1fd4e6b5c1U);
}

TEST(SleepingCall, ThereIsNoneWhereTheKernelShowsNone) {
  for (const char* text : {"running\n", "-1 0x7ffd3cb1f8d8 0x55d0c8a2b0c0\n", "", "202 0x1 0x80\n", "202\n"}) {
    EXPECT_FALSE(parse_sleeping_call(text)) << text;
  }
}

SleepingCall futex(std::uint64_t operation) {
  SleepingCall call;
  call.number = 202;
  call.arguments = {0x404010, operation};
  return call;
}

TEST(AwaitedFutex, OfEachOperationThatWaits) {
  constexpr std::uint64_t of_process = 128;
  constexpr std::uint64_t by_real_time = 256;
  for (const std::uint64_t operation : {0U, 6U, 9U, 11U, 13U}) {
    EXPECT_EQ(awaited_futex(futex(operation)), 0x404010U) << operation;
    EXPECT_EQ(awaited_futex(futex(operation | of_process | by_real_time)), 0x404010U) << operation;
  }
  for (const std::uint64_t operation : {1U, 3U, 5U, 7U, 10U}) {
    EXPECT_FALSE(awaited_futex(futex(operation | of_process))) << operation << " wakes others";
  }
}

TEST(AwaitedFutex, OfOtherCalls) {
  SleepingCall call = futex(0);
  call.number = 449;
  EXPECT_EQ(awaited_futex(call), 0U) << "of several";
  call.number = 455;
  EXPECT_EQ(awaited_futex(call), 0x404010U);
  for (const std::uint64_t number : {0U, 7U, 35U, 230U, 232U}) {
    call.number = number;
    EXPECT_FALSE(awaited_futex(call)) << number << " waits for no futex";
  }
}

TEST(Schedule, IsTheTimeAwakeAndTheTurns) {
  const auto times = parse_schedule("4523424 24425 17\n");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->awake_ns, 4523424U + 24425U);
  EXPECT_EQ(times->turns, 17U);
  for (const char* text : {"4523424 0 0\n", "4523424 24425", ""}) {
    EXPECT_FALSE(parse_schedule(text)) << text;
  }
}

}  // namespace
}  // namespace crosstalk::observer::sleeping_call_test
