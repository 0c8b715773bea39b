// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/call_frame.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "collectors/in_target/sys/signal_frame.h"

namespace crosstalk::injector::call_frame_test {
namespace {

constexpr std::uint64_t features = 7;  // x87, SSE, AVX
constexpr std::uint64_t restorer = 0x7000;
constexpr std::uint64_t function = 0x5000;

StoppedThread stopped(std::uint64_t rsp) {
  StoppedThread thread;
  thread.registers.rsp = rsp;
  thread.registers.rip = 0x1234;
  thread.registers.rbx = 0xb;
  thread.registers.orig_rax = ~std::uint64_t{0};
  thread.registers.eflags = 0x202 | 0x400;
  thread.mask = 0x55;
  thread.vector_state.resize(vector_bytes(features) + 256);  // ptrace shows more than the thread may use
  std::memcpy(thread.vector_state.data() + 464, &features, sizeof features);
  return thread;
}

CallFrame laid_out(std::uint64_t rsp) {
  const StoppedThread thread = stopped(rsp);
  auto call = lay_out_call(thread, thread.registers, function, "/a/library", 2, restorer);
  EXPECT_TRUE(call) << call.error().message;
  return call ? *call : CallFrame{};
}

TEST(CallFrame, IsAlignedAndLeavesTheRedZoneAlone) {
  for (std::uint64_t rsp = 0x100000; rsp < 0x100040; ++rsp) {
    const CallFrame call = laid_out(rsp);
    EXPECT_EQ((call.registers.rsp + 8) % 16, 0U) << rsp;
    EXPECT_EQ(call.begin, call.registers.rsp);
    EXPECT_EQ(call.begin + call.bytes.size(), rsp - 128);
    in_target::SignalFrame frame;
    std::memcpy(&frame, call.bytes.data(), in_target::kernel_frame_bytes);
    EXPECT_EQ(frame.context.vector_state % 64, 0U);
  }
}

TEST(CallFrame, ReturnsToWhereTheThreadWas) {
  const CallFrame call = laid_out(0x100008);
  in_target::SignalFrame frame;
  std::memcpy(&frame, call.bytes.data(), in_target::kernel_frame_bytes);
  EXPECT_EQ(frame.return_address, restorer);
  EXPECT_EQ(frame.context.registers[REG_RIP], 0x1234U);
  EXPECT_EQ(frame.context.registers[REG_RSP], 0x100008U);
  EXPECT_EQ(frame.context.registers[REG_RBX], 0xbU);
  EXPECT_EQ(frame.context.registers[REG_EFL], 0x602U);
  EXPECT_EQ(frame.context.mask, 0x55U);
  EXPECT_EQ(in_target::vector_state_bytes(call.bytes.data() + (frame.context.vector_state - call.begin)),
            vector_bytes(features) + 4);
}

TEST(CallFrame, PassesTheArguments) {
  const CallFrame call = laid_out(0x100000);
  EXPECT_EQ(call.registers.rip, function);
  EXPECT_EQ(call.registers.rsi, 2U);
  EXPECT_EQ(call.registers.orig_rax, ~std::uint64_t{0});
  EXPECT_EQ(call.registers.eflags & 0x400U, 0U) << "functions expect strings to go upwards";
  EXPECT_STREQ(reinterpret_cast<const char*>(call.bytes.data() + (call.registers.rdi - call.begin)), "/a/library");
}

TEST(CallFrame, RefusesAVectorStateThatItDoesNotKnow) {
  StoppedThread thread = stopped(0x100000);
  const std::uint64_t tiles = 1U << 18U;  // AMX in use
  std::memcpy(thread.vector_state.data() + 512, &tiles, sizeof tiles);
  EXPECT_FALSE(lay_out_call(thread, thread.registers, function, "", 0, restorer));
  thread.vector_state.resize(100);
  EXPECT_FALSE(lay_out_call(thread, thread.registers, function, "", 0, restorer));
}

user_regs_struct in_call(std::uint64_t number, std::int64_t result) {
  user_regs_struct registers{};
  registers.rip = 0x1002;
  registers.orig_rax = number;
  registers.rax = static_cast<std::uint64_t>(result);
  return registers;
}

void expect_again(std::uint64_t number, std::int64_t result) {
  const auto after = resumed(in_call(number, result));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->rip, 0x1000U);
  EXPECT_EQ(after->rax, number);
}

void expect_result(std::uint64_t number, std::int64_t result) {
  const auto after = resumed(in_call(number, result));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->rip, 0x1002U);
  EXPECT_EQ(static_cast<std::int64_t>(after->rax), result);
}

TEST(Resumed, CallsThatTheKernelWouldBeginAgain) {
  expect_again(SYS_futex, -512);
  expect_again(SYS_read, -513);
  expect_again(SYS_ppoll, -514);
}

TEST(Resumed, CallsThatAStopEndsAndThatHaveDoneNothing) {
  expect_again(SYS_epoll_wait, -EINTR);
  expect_again(SYS_recvfrom, -EINTR);
}

TEST(Resumed, CallsThatAreOver) {
  expect_result(SYS_read, 5);
  expect_result(SYS_read, -EAGAIN);
  expect_result(SYS_close, -EINTR);    // the descriptor may be closed
  expect_result(SYS_connect, -EINTR);  // it goes on connecting
}

TEST(Resumed, WaitsOfWhichTheKernelKnowsTheRestAreLeftToIt) { EXPECT_FALSE(resumed(in_call(SYS_nanosleep, -516))); }

TEST(Resumed, OutsideOfCallsNothingChanges) {
  user_regs_struct registers = in_call(0, -512);
  registers.orig_rax = ~std::uint64_t{0};
  const auto after = resumed(registers);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->rip, 0x1002U);
  EXPECT_EQ(static_cast<std::int64_t>(after->rax), -512);
}

TEST(Restorer, IsFoundWhereverItIs) {
  std::array<unsigned char, 64> code{};
  EXPECT_FALSE(find_restorer(code.data(), code.size()));
  constexpr std::array<unsigned char, 9> end = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  std::copy(end.begin(), end.end(), code.begin() + 55);
  EXPECT_EQ(find_restorer(code.data(), code.size()), 55U);
  EXPECT_FALSE(find_restorer(code.data(), code.size() - 1));
}

}  // namespace
}  // namespace crosstalk::injector::call_frame_test
