// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/stack_room.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstddef>
#include <string>

namespace crosstalk::injector::stack_room_test {
namespace {

/// Runs `body` for ever in a child, on a stack of `bytes` with a guard page below it, and returns the finding there.
std::string found_on_a_stack_of(std::size_t bytes, void (*body)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr std::size_t guard = 4096;
    auto* const memory = static_cast<std::byte*>(
        ::mmap(nullptr, guard + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(memory, guard, PROT_NONE);
    static ucontext_t there;
    ::getcontext(&there);
    there.uc_stack.ss_sp = memory + guard;
    there.uc_stack.ss_size = bytes;
    ::makecontext(&there, body, 0);
    ::setcontext(&there);
    ::_exit(1);
  }
  ::usleep(50'000);
  const auto why = why_no_room_for_signals(child);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, WNOHANG), 0) << "it goes on";
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return why ? *why : "refused: " + why.error().message;
}

void run() {
  for (volatile unsigned n = 0;; n = n + 1) {
  }
}
/// Uses the instruction itself: binding a function at its first call takes more than a little stack.
void wait() {
  for (;;) {
    long number = SYS_pause;
    asm volatile("syscall" : "+a"(number) : : "rcx", "r11", "memory");
  }
}

TEST(StackRoom, IsLookedForWhereThreadsRunAndWait) {
  constexpr std::size_t little = 1024;
  constexpr std::size_t enough = 65536;
  ASSERT_GT(signal_bytes(), little);
  EXPECT_EQ(found_on_a_stack_of(enough, run), "");
  EXPECT_EQ(found_on_a_stack_of(enough, wait), "");
  EXPECT_NE(found_on_a_stack_of(little, run).find("bytes of stack left"), std::string::npos);
  EXPECT_NE(found_on_a_stack_of(little, wait).find("bytes of stack left"), std::string::npos);
}

TEST(StackRoom, StackPointersInTheKernelsWords) {
  EXPECT_EQ(stack_pointer_in("202 0x7f00 0x89 0x0 0x0 0x0 0xffffffff 0x7ffd2fba9ad0 0x7f8ba7a8f2a6\n"),
            0x7ffd2fba9ad0U);
  EXPECT_EQ(stack_pointer_in("-1 0x7ffd2fba9ad0 0x7f8ba7a8f2a6\n"), 0x7ffd2fba9ad0U);
  EXPECT_FALSE(stack_pointer_in("running\n").has_value());
  EXPECT_FALSE(stack_pointer_in("").has_value());
}

TEST(StackRoom, ThreadsThatExecuteAnotherProgramInTheKernelsWords) {
  EXPECT_TRUE(executes_program("59 0x55d0 0x55d8 0x55e0 0x8 0x7f0 0x0 0x7ffd2fba9ad0 0x7f8ba7a8f2a6\n"));
  EXPECT_TRUE(executes_program("322 0x3 0x55d8 0x55e0 0x8 0x1000 0x0 0x7ffd2fba9ad0 0x7f8ba7a8f2a6\n"));
  EXPECT_FALSE(executes_program("202 0x59 0x89 0x0 0x0 0x0 0xffffffff 0x7ffd2fba9ad0 0x7f8ba7a8f2a6\n"));
  EXPECT_FALSE(executes_program("running\n"));
  EXPECT_FALSE(executes_program(""));
}

}  // namespace
}  // namespace crosstalk::injector::stack_room_test
