// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/handler_stack.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <deque>
#include <set>
#include <thread>
#include <vector>

namespace crosstalk::in_target::handler_stack_test {
namespace {

volatile char& byte_at(std::uint64_t address) { return *reinterpret_cast<volatile char*>(address); }  // NOLINT

std::int32_t own_thread() { return static_cast<std::int32_t>(syscall(SYS_gettid)); }

/// Returns stacks for one test, which outlive it: their memory is never freed.
HandlerStacks& fresh_stacks() {
  static auto* const all = new std::deque<HandlerStacks>();
  return all->emplace_back();
}

TEST(HandlerStacks, CanBeWrittenToFromEndToEnd) {
  HandlerStacks& stacks = fresh_stacks();
  HandlerStack* stack = stacks.take(getpid(), own_thread());
  ASSERT_NE(nullptr, stack);
  const AlternateStack bounds = stack->bounds();
  EXPECT_EQ(0U, stack->top() % 4096);
  EXPECT_EQ(bounds.base + bounds.bytes, stack->top());
  for (std::uint64_t at = bounds.base; at < stack->top(); at += 64) {
    byte_at(at) = 1;
  }
}

TEST(HandlerStacks, FaultBelowTheirEnd) {
  HandlerStacks& stacks = fresh_stacks();
  HandlerStack* stack = stacks.take(getpid(), own_thread());
  ASSERT_NE(nullptr, stack);
  const std::uint64_t below = stack->bounds().base - 1;
  EXPECT_DEATH(byte_at(below) = 1, "");
}

TEST(HandlerStacks, AreKnownByAddress) {
  HandlerStacks& stacks = fresh_stacks();
  EXPECT_EQ(nullptr, stacks.at(4096));
  HandlerStack* first = stacks.take(getpid(), own_thread());
  HandlerStack* second = stacks.take(getpid(), own_thread());
  ASSERT_NE(nullptr, first);
  ASSERT_NE(nullptr, second);
  EXPECT_NE(first, second);
  for (HandlerStack* stack : {first, second}) {
    EXPECT_EQ(stack, stacks.at(stack->bounds().base + 1));
    EXPECT_EQ(stack, stacks.at(stack->top())) << "as the stack pointer is before the first push";
    EXPECT_EQ(stack, stacks.at(stack->top() - 3000));
  }
  const char local = 0;
  EXPECT_EQ(nullptr, stacks.at(reinterpret_cast<std::uint64_t>(&local)));
}

TEST(HandlerStacks, AreAllDifferentAndTakenAgain) {
  HandlerStacks& stacks = fresh_stacks();
  std::set<HandlerStack*> taken;
  for (int i = 0; i < 100; ++i) {
    HandlerStack* stack = stacks.take(getpid(), own_thread());
    ASSERT_NE(nullptr, stack);
    EXPECT_TRUE(taken.insert(stack).second);
    EXPECT_EQ(stack, stacks.at(stack->top()));
  }
  HandlerStack* given = *taken.begin();
  given->set_target_stack({4096, 8192, 0});
  HandlerStacks::give(*given);
  EXPECT_EQ(given, stacks.take(getpid(), own_thread()));
  EXPECT_EQ(0U, given->target_stack().bytes) << "nothing is left of its last thread";
}

TEST(HandlerStacks, OfThreadsThatAreGoneAreFound) {
  HandlerStacks& stacks = fresh_stacks();
  std::set<HandlerStack*> of_the_dead;
  for (std::uint32_t i = 0; i < HandlerStacks::in_a_block; ++i) {
    std::thread([&] { of_the_dead.insert(stacks.take(getpid(), own_thread())); }).join();
  }
  ASSERT_EQ(HandlerStacks::in_a_block, of_the_dead.size());
  ASSERT_EQ(0U, of_the_dead.count(nullptr));
  EXPECT_EQ(1U, of_the_dead.count(stacks.take(getpid(), own_thread()))) << "before there are new ones";
}

TEST(HandlerStacks, AreFreeInAForkedChildButTheOneInUse) {
  HandlerStacks& stacks = fresh_stacks();
  std::vector<HandlerStack*> taken;
  taken.reserve(4);
  for (int i = 0; i < 4; ++i) {
    taken.push_back(stacks.take(getpid(), own_thread()));
  }
  stacks.after_fork(taken[1], own_thread());
  EXPECT_EQ(taken[0], stacks.take(getpid(), own_thread()));
  EXPECT_EQ(taken[2], stacks.take(getpid(), own_thread()));
}

TEST(HandlerStacks, GoToOneThreadEach) {
  HandlerStacks& stacks = fresh_stacks();
  std::vector<std::vector<HandlerStack*>> taken(4);
  std::vector<std::thread> threads;
  threads.reserve(taken.size());
  for (auto& own : taken) {
    threads.emplace_back([&own, &stacks] {
      for (int i = 0; i < 60; ++i) {
        own.push_back(stacks.take(getpid(), getpid()));
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  std::set<HandlerStack*> all;
  for (const auto& own : taken) {
    all.insert(own.begin(), own.end());
  }
  EXPECT_EQ(0U, all.count(nullptr));
  EXPECT_EQ(240U, all.size());
}

}  // namespace
}  // namespace crosstalk::in_target::handler_stack_test
