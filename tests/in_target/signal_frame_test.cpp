// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/signal_frame.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <vector>

namespace crosstalk::in_target::signal_frame_test {
namespace {

constexpr std::uint64_t state_bytes = 2696;
constexpr AlternateStack none{};
constexpr AlternateStack small{0x10000, 8192, 0};
constexpr std::uint64_t elsewhere = 0x7000'0000'1234;

TEST(AlternateStack, IsRunOnFromAboveItsBaseToItsTop) {
  EXPECT_FALSE(runs_on(small, small.base));
  EXPECT_TRUE(runs_on(small, small.base + 1));
  EXPECT_TRUE(runs_on(small, small.base + small.bytes));
  EXPECT_FALSE(runs_on(small, small.base + small.bytes + 1));
  EXPECT_FALSE(runs_on({small.base, small.bytes, stack_disarms_itself}, small.base + 1));
  EXPECT_FALSE(runs_on(none, elsewhere));
}

TEST(AlternateStack, IsReportedAsTheKernelDoes) {
  EXPECT_EQ(stack_is_disabled, reported_flags(none, elsewhere));
  EXPECT_EQ(0U, reported_flags(small, elsewhere));
  EXPECT_EQ(stack_is_in_use, reported_flags(small, small.base + 100));
  EXPECT_EQ(stack_disarms_itself, reported_flags({small.base, small.bytes, stack_disarms_itself}, small.base + 100));
}

TEST(AlternateStack, ThatIsDisabledIsForgotten) {
  const AlternateStack kept = accepted({0x10000, 8192, stack_is_disabled});
  EXPECT_EQ(0U, kept.base);
  EXPECT_EQ(0U, kept.bytes);
  EXPECT_EQ(8192U, accepted(small).bytes);
}

TEST(AlternateStack, OfAContextIsRestoredWhereTheKernelWould) {
  const AlternateStack other{0x90000, 65536, 0};
  EXPECT_EQ(other.base, after_return(small, other, elsewhere).base);
  EXPECT_EQ(small.base, after_return(small, other, small.base + 64).base) << "one that is in use stays";
  EXPECT_EQ(small.base, after_return(small, {other.base, 2047, 0}, elsewhere).base) << "too small";
  EXPECT_EQ(small.base, after_return(small, {other.base, 65536, 64}, elsewhere).base) << "no such flag";
  EXPECT_EQ(small.base, after_return(small, none, elsewhere).base) << "as of a thread that never had one";
  EXPECT_EQ(0U, after_return(small, {0, 0, stack_is_disabled}, elsewhere).bytes);
}

TEST(FramePlace, IsBelowTheRedZoneOfTheInterruptedStack) {
  for (const bool wants : {false, true}) {
    const FramePlace place = frame_place(none, wants, elsewhere, state_bytes);
    EXPECT_TRUE(place.fits);
    EXPECT_EQ(0U, place.vector_state % 64);
    EXPECT_LE(place.vector_state + state_bytes, elsewhere - 128);
    EXPECT_LE(place.frame + kernel_frame_bytes, place.vector_state);
    EXPECT_EQ(8U, place.frame % 16) << "as behind a call";
    EXPECT_GT(place.frame, elsewhere - 128 - state_bytes - sizeof(SignalFrame) - 64 - 16 - 8);
  }
}

TEST(FramePlace, IsOnTheAlternateStackOfAHandlerThatWantsIt) {
  const FramePlace place = frame_place(small, true, elsewhere, state_bytes);
  EXPECT_TRUE(place.fits);
  EXPECT_GT(place.frame, small.base);
  EXPECT_LE(place.vector_state + state_bytes, small.base + small.bytes);
  EXPECT_GT(frame_place(small, false, elsewhere, state_bytes).frame, elsewhere - 8192);
}

TEST(FramePlace, NestsOnTheAlternateStack) {
  const std::uint64_t interrupted = small.base + 6000;
  for (const bool wants : {false, true}) {
    const FramePlace place = frame_place(small, wants, interrupted, state_bytes);
    EXPECT_TRUE(place.fits);
    EXPECT_LT(place.vector_state, interrupted - 128 - state_bytes + 64);
    EXPECT_FALSE(frame_place(small, wants, small.base + 3000, state_bytes).fits);
  }
}

TEST(FramePlace, HasNoRoomOnAStackThatIsTooSmall) {
  EXPECT_FALSE(frame_place({0x10000, 2048, 0}, true, elsewhere, state_bytes).fits);
  EXPECT_TRUE(frame_place({0x10000, 2048, 0}, false, elsewhere, state_bytes).fits);
}

// The kernel's own frames, compared with the functions' answers about them.

const SignalFrame* seen_frame = nullptr;
FramePlace expected;
std::uint64_t seen_state = 0;
bool shapes_agree = false;

void look_at_frame(int /*number*/, siginfo_t* info, void* context) {
  seen_frame = reinterpret_cast<const SignalFrame*>(static_cast<const char*>(context) - offsetof(SignalFrame, context));
  const KernelContext& kernel = seen_frame->context;
  shapes_agree = info == &seen_frame->info;
  seen_state = kernel.vector_state;
  const AlternateStack stack{kernel.stack_base, kernel.stack_bytes, kernel.stack_flags};
  expected = frame_place(stack, true, kernel.registers[REG_RSP],
                         vector_state_bytes(reinterpret_cast<const void*>(kernel.vector_state)));  // NOLINT: an address
}

void raise_with_handler() {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = look_at_frame;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ASSERT_EQ(0, sigaction(SIGUSR1, &action, &before));
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_TRUE(shapes_agree);
  EXPECT_TRUE(expected.fits);
  EXPECT_EQ(seen_state, expected.vector_state);
  // The word behind our frames may move them by one step of their alignment.
  const auto seen = reinterpret_cast<std::uint64_t>(seen_frame);
  EXPECT_LE(expected.frame, seen);
  EXPECT_GE(expected.frame + 16, seen);
}

TEST(FramePlace, IsWhereTheKernelPutsTheFrame) {
  raise_with_handler();
  std::vector<char> memory(65536);
  stack_t stack{};
  stack_t before{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  ASSERT_EQ(0, sigaltstack(&stack, &before));
  raise_with_handler();
  sigaltstack(&before, nullptr);
}

}  // namespace
}  // namespace crosstalk::in_target::signal_frame_test
