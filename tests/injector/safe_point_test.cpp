// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/safe_point.h"

#include <gtest/gtest.h>

#include <vector>

namespace crosstalk::injector::safe_point_test {
namespace {

using Stack = std::vector<StackFunction>;

StackFunction program(const char* name = "") { return {CodeOwner::program, name, true, false, false}; }
StackFunction libc(const char* name = "") { return {CodeOwner::libc, name, true, false, false}; }
StackFunction loader() { return {CodeOwner::loader, "_dl_fixup", true, false, false}; }
StackFunction collector() { return {CodeOwner::collector, "", true, false, false}; }

/// Adds the frames below a thread's own functions, and below main().
Stack with_thread(Stack stack) {
  stack.push_back(libc());  // start_thread
  StackFunction clone = libc();
  clone.outermost = true;
  stack.push_back(clone);
  return stack;
}
Stack with_main(Stack stack) {
  stack.push_back(libc());
  stack.push_back(libc("__libc_start_main"));
  StackFunction start = program("_start");
  start.outermost = true;
  stack.push_back(start);
  return stack;
}

TEST(SafePoint, CodeOfTheProgram) {
  EXPECT_EQ(why_no_call(with_thread({program()})), "");
  EXPECT_EQ(why_no_call(with_main({program("inner"), program("main")})), "");
}

TEST(SafePoint, WaitingInTheCLibrary) {
  EXPECT_EQ(why_no_call(with_thread({libc("pthread_cond_wait"), program()})), "");
  EXPECT_EQ(why_no_call(with_thread({libc(), libc(), libc("pthread_mutex_lock"), program()})), "");
  EXPECT_EQ(why_no_call(with_main({libc("epoll_wait"), program("main")})), "");
}

TEST(SafePoint, FunctionsOfTheCLibraryThatMayHoldALock) {
  EXPECT_NE(why_no_call(with_thread({libc("malloc"), program()})), "");
  EXPECT_NE(why_no_call(with_thread({libc(), libc("free"), program()})), "");
  EXPECT_NE(why_no_call(with_thread({libc("printf"), program()})), "");
  EXPECT_NE(why_no_call(with_thread({libc("fork"), program()})), "");
  EXPECT_NE(why_no_call(with_thread({libc(), program()})), "") << "nobody knows which";
  EXPECT_NE(why_no_call(with_thread({libc("pthread_create"), program()})), "");
}

TEST(SafePoint, WhatWaitsWithinAFunctionThatHoldsALock) {
  EXPECT_NE(why_no_call(with_thread({libc("nanosleep"), libc("malloc"), program()})), "");
  EXPECT_NE(why_no_call(with_thread({program("visit"), libc("dl_iterate_phdr"), program()})), "");
  EXPECT_NE(why_no_call(with_thread({program("compare"), libc("qsort"), program()})), "");
}

TEST(SafePoint, TheProgramsOwnAllocator) {
  EXPECT_NE(why_no_call(with_thread({program(), program("malloc"), program()})), "");
  EXPECT_NE(why_no_call(with_thread({program("_Znwm"), program()})), "");
  EXPECT_EQ(why_no_call(with_thread({program("mallocate"), program()})), "");
}

TEST(SafePoint, TheLoader) {
  EXPECT_NE(why_no_call(with_thread({loader(), program()})), "");
  EXPECT_NE(why_no_call(with_thread({program("constructor"), loader(), libc("dlopen"), program()})), "");
}

TEST(SafePoint, SignalHandlers) {
  StackFunction trampoline = libc();
  trampoline.signal_frame = true;
  EXPECT_EQ(why_no_call(with_thread({program("handler"), trampoline, program()})), "it is in a signal handler");
}

TEST(SafePoint, ThreadsThatBeginOrEnd) {
  EXPECT_NE(why_no_call(with_thread({})), "");
  EXPECT_NE(why_no_call(with_thread({program("destructor"), libc()})), "") << "called from the end of a thread";
  EXPECT_NE(why_no_call(with_main({program("destructor"), libc(), libc("exit")})), "");
}

TEST(SafePoint, TheCollector) {
  EXPECT_EQ(why_no_call(with_thread({program(), collector()})), "") << "it has started the thread";
  EXPECT_NE(why_no_call(with_thread({collector()})), "");
  EXPECT_NE(why_no_call(with_thread({libc("read"), collector(), program()})), "");
}

TEST(SafePoint, StacksThatAreNotKnownToTheirEnd) {
  EXPECT_NE(why_no_call({}), "");
  EXPECT_NE(why_no_call(Stack{program(), program("main")}), "");
  StackFunction guessed = program();
  guessed.described = false;
  EXPECT_NE(why_no_call(with_thread({program(), guessed, program()})), "");
  guessed = libc("read");
  guessed.described = false;
  EXPECT_NE(why_no_call(with_thread({guessed, program()})), "");
}

}  // namespace
}  // namespace crosstalk::injector::safe_point_test
