// SPDX-License-Identifier: Apache-2.0
// Bounds of an iteration's time, and loops that only wait, on instructions written by hand.
#include "symbolizer/loops/iteration_time.h"

#include <gtest/gtest.h>

#include <vector>

#include "symbolizer/loops/waiting.h"

namespace crosstalk::symbolizer::iteration_time_test {
namespace {

using Code = std::vector<std::uint8_t>;
const Code inc_memory{0x48, 0xff, 0x00};                     // inc (%rax)
const Code load_global{0x48, 0x8b, 0x05, 0x87, 0x2a, 0, 0};  // mov 0x2a87(%rip), %rax
const Code lock_inc{0xf0, 0x48, 0xff, 0x00};                 // lock inc (%rax)
const Code load_rax{0x48, 0x8b, 0x00};                       // mov (%rax), %rax
const Code add_one{0x48, 0x83, 0xc1, 0x01};                  // add $1, %rcx
const Code load_rcx{0x48, 0x8b, 0x08};                       // mov (%rax), %rcx
const Code store_rcx{0x48, 0x89, 0x08};                      // mov %rcx, (%rax)
const Code store_there{0x48, 0x89, 0x4a, 0x08};              // mov %rcx, 8(%rdx)
const Code multiply{0x48, 0x0f, 0xaf, 0xc9};                 // imul %rcx, %rcx
const Code count_down{0x48, 0xff, 0xce};                     // dec %rsi
const Code advance{0x48, 0x83, 0xc0, 0x40};                  // add $64, %rax
const Code clear_rcx{0x48, 0x31, 0xc9};                      // xor %rcx, %rcx
const Code jump_back{0x75, 0xf0};                            // jne
const Code pause_hint{0xf3, 0x90};                           // pause
const Code test_rcx{0x48, 0x85, 0xc9};                       // test %rcx, %rcx
const Code test_rax{0x48, 0x85, 0xc0};                       // test %rax, %rax
const Code exchange{0x48, 0x87, 0x08};                       // xchg %rcx, (%rax)
const Code compare_exchange{0xf0, 0x48, 0x0f, 0xb1, 0x0a};   // lock cmpxchg %rcx, (%rdx)
const Code lock_or{0xf0, 0x48, 0x09, 0x08};                  // lock or %rcx, (%rax)
const Code call{0xe8, 0, 0, 0, 0};
const Code repeated{0xf3, 0xa4};  // rep movsb

std::vector<std::span<const std::uint8_t>> way(std::initializer_list<const Code*> codes) {
  std::vector<std::span<const std::uint8_t>> result;
  for (const Code* code : codes) {
    result.emplace_back(*code);
  }
  return result;
}

constexpr CoreCycles core{18, 4};

TEST(IterationTime, AWordThatIsLoadedAndStoredIsAChain) {
  const auto time = iteration_time(way({&inc_memory, &count_down, &jump_back}), core);
  ASSERT_TRUE(time);
  EXPECT_DOUBLE_EQ(time->likely, 5) << "forwarded in four cycles, added in one";
  EXPECT_DOUBLE_EQ(time->least, 2) << "a core that renames the word";
  EXPECT_GT(time->most, time->likely);
}

TEST(IterationTime, AWordThatIsRenamedWaitsForNoStore) {
  const auto time = iteration_time(way({&inc_memory, &count_down, &jump_back}), CoreCycles{18, 0.004});
  ASSERT_TRUE(time);
  EXPECT_NEAR(time->likely, 1, 0.01) << "added in one cycle";
}

TEST(IterationTime, LoadAdditionAndStoreAreTheChainThatOneInstructionIs) {
  const auto apart = iteration_time(way({&load_rcx, &add_one, &store_rcx, &jump_back}), core);
  ASSERT_TRUE(apart);
  EXPECT_DOUBLE_EQ(apart->likely, 5);
  EXPECT_DOUBLE_EQ(apart->least, 2);
}

TEST(IterationTime, LockedOnesFollowEachOther) {
  const auto one = iteration_time(way({&lock_inc, &count_down, &jump_back}), core);
  ASSERT_TRUE(one);
  EXPECT_DOUBLE_EQ(one->likely, 18);
  const auto elsewhere = iteration_time(way({&lock_inc, &advance, &jump_back}), core);
  ASSERT_TRUE(elsewhere);
  EXPECT_DOUBLE_EQ(elsewhere->likely, 18) << "of different words, too";
}

TEST(IterationTime, AChainThroughRegisters) {
  EXPECT_DOUBLE_EQ(iteration_time(way({&multiply, &count_down, &jump_back}), core)->likely, 3);
  EXPECT_DOUBLE_EQ(iteration_time(way({&multiply, &multiply, &jump_back}), core)->likely, 6);
  EXPECT_DOUBLE_EQ(iteration_time(way({&clear_rcx, &multiply, &count_down, &jump_back}), core)->likely, 1)
      << "what is cleared depends on nothing: the counter and the width are left";
  EXPECT_DOUBLE_EQ(iteration_time(way({&load_rax, &jump_back}), core)->likely, 4.5) << "a list";
}

TEST(IterationTime, LoadsElsewhereOverlap) {
  const auto time = iteration_time(way({&load_rcx, &advance, &count_down, &jump_back}), core);
  ASSERT_TRUE(time);
  EXPECT_DOUBLE_EQ(time->likely, 1);
  EXPECT_DOUBLE_EQ(time->least, 1);
  EXPECT_GE(time->most, 3) << "two instructions a cycle, and the counter";
}

TEST(IterationTime, StoresAreForwardedToTheirOwnWordOnly) {
  const auto same = iteration_time(way({&load_rcx, &multiply, &store_rcx, &jump_back}), core);
  const auto other = iteration_time(way({&load_rcx, &multiply, &store_there, &jump_back}), core);
  ASSERT_TRUE(same && other);
  EXPECT_DOUBLE_EQ(same->likely, 7) << "forwarded in four, multiplied in three";
  EXPECT_LT(other->likely, 2);
}

TEST(IterationTime, OrderedBounds) {
  for (const auto& each :
       {way({&lock_inc, &multiply, &load_rax, &jump_back}), way({&pause_hint, &load_rcx, &jump_back}),
        way({&inc_memory}), way({&exchange, &test_rcx, &jump_back})}) {
    const auto time = iteration_time(each, core);
    ASSERT_TRUE(time);
    EXPECT_LE(time->least, time->likely);
    EXPECT_LE(time->likely, time->most);
    EXPECT_GT(time->least, 0);
  }
}

TEST(IterationTime, WhatIsNotBounded) {
  const Code system_call{0x0f, 0x05};
  EXPECT_FALSE(iteration_time(way({&system_call, &jump_back}), core));
  EXPECT_FALSE(iteration_time(way({&repeated}), core));
  EXPECT_FALSE(iteration_time({}, core));
  const Code garbage{0x06};
  EXPECT_FALSE(iteration_time(way({&garbage}), core));
}

TEST(IterationTime, SeveralWays) {
  const std::vector<Way> ways{{{}, way({&multiply, &jump_back})}, {{}, way({&lock_inc, &jump_back})}};
  const auto both = over_ways(ways, core);
  ASSERT_TRUE(both);
  EXPECT_DOUBLE_EQ(both->likely, (3 + 18) / 2.0);
  EXPECT_LT(both->least, 3);
  EXPECT_GE(both->most, 18);
  EXPECT_FALSE(over_ways({}, core));
}

/// Each conditional jump of the way may end the loop.
Waiting waits(const std::vector<std::span<const std::uint8_t>>& codes) {
  std::vector<std::size_t> decisions;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i][0] == 0x75) {
      decisions.push_back(i);
    }
  }
  return symbolizer::waits(codes, decisions);
}

TEST(Waiting, WhatEndsTheLoopMustBeLoaded) {
  EXPECT_EQ(waits(way({&load_rcx, &multiply, &count_down, &jump_back})), Waiting::no) << "it counts, and computes";
  EXPECT_EQ(waits(way({&pause_hint, &load_rcx, &test_rcx, &jump_back, &count_down, &jump_back})), Waiting::surely)
      << "a counter is the time-out of a loop that waits";
  const Code bound{0x48, 0x3b, 0x30};  // cmp (%rax), %rsi
  EXPECT_EQ(waits(way({&count_down, &bound, &jump_back})), Waiting::no) << "a counter, up to what is loaded";
  EXPECT_EQ(waits(way({&bound, &jump_back})), Waiting::perhaps) << "until it is what it is not yet";
  const Code sum{0x48, 0x03, 0x08};  // add (%rax), %rcx
  EXPECT_EQ(waits(way({&sum, &test_rcx, &jump_back})), Waiting::no) << "the sum grows by itself";
  EXPECT_EQ(waits(way({&test_rcx, &jump_back, &load_rcx})), Waiting::perhaps) << "loaded for the next iteration";
}

TEST(Waiting, LooksAtOnePlace) {
  EXPECT_EQ(waits(way({&load_rcx, &test_rcx, &jump_back})), Waiting::perhaps);
  EXPECT_EQ(waits(way({&pause_hint, &load_rcx, &test_rcx, &jump_back})), Waiting::surely);
  EXPECT_EQ(waits(way({&load_global, &test_rax, &jump_back, &pause_hint})), Waiting::surely) << "of a variable";
  EXPECT_EQ(waits(way({&exchange, &test_rcx, &jump_back})), Waiting::perhaps) << "a lock that is tried";
  const Code clear_rax{0x31, 0xc0};             // xor %eax, %eax
  const Code one_more{0x48, 0x8d, 0x48, 0x01};  // lea 1(%rax), %rcx
  const Code load_there{0x48, 0x8b, 0x02};      // mov (%rdx), %rax
  EXPECT_EQ(waits(way({&clear_rax, &compare_exchange, &jump_back})), Waiting::perhaps) << "a lock that must be free";
  EXPECT_EQ(waits(way({&one_more, &compare_exchange, &jump_back})), Waiting::no) << "expects what it found before";
  EXPECT_EQ(waits(way({&load_there, &one_more, &compare_exchange, &jump_back})), Waiting::no) << "an update";
  EXPECT_EQ(waits(way({&load_rcx, &advance, &jump_back})), Waiting::no) << "it goes through memory";
  EXPECT_EQ(waits(way({&load_rcx, &store_there, &jump_back})), Waiting::no) << "it does something";
  EXPECT_EQ(waits(way({&lock_inc, &jump_back})), Waiting::no) << "it counts";
  EXPECT_EQ(waits(way({&load_rcx, &call, &jump_back})), Waiting::no);
  EXPECT_EQ(waits(way({&count_down, &jump_back})), Waiting::no) << "it looks at nothing";
}

TEST(Waiting, UpdatesOfAWord) {
  EXPECT_EQ(update_of(lock_inc), Update::add);
  EXPECT_EQ(update_of(Code{0xf0, 0x48, 0x0f, 0xc1, 0x08}), Update::fetch_add) << "lock xadd %rcx, (%rax)";
  EXPECT_EQ(update_of(inc_memory), Update::plain);
  EXPECT_EQ(update_of(exchange), Update::exchange);
  EXPECT_EQ(update_of(compare_exchange), Update::compare_exchange);
  EXPECT_EQ(update_of(lock_or), Update::bits);
  EXPECT_EQ(update_of(load_rcx), Update::none);
  EXPECT_EQ(update_of(store_rcx), Update::none);
  EXPECT_EQ(update_of(multiply), Update::none);
}

}  // namespace
}  // namespace crosstalk::symbolizer::iteration_time_test
