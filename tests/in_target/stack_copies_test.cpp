// SPDX-License-Identifier: Apache-2.0
// Pieces of stacks in records: their length, and their number a second.
#include "collectors/in_target/core/stack_copies.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <vector>

#include "collectors/in_target/core/runtime.h"
#include "profile/records.h"
#include "tests/in_target/fake_kernel.h"

namespace crosstalk::in_target::stack_copies_test {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::size_t page = 4096;

/// Two pages of a stack, and none behind them.
class StackCopies : public testing::Test {
 protected:
  StackCopies() {
    stack_ = static_cast<std::uint64_t*>(
        ::mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::munmap(reinterpret_cast<std::byte*>(stack_) + 2 * page, page);
    for (std::size_t i = 0; i < words; ++i) {
      stack_[i] = 0x1000 + i;
    }
    self_.stack_low = address(0);
    self_.stack_high = address(words);
    runtime().config.stacks_per_s = 10;
    runtime().config.stack_bytes = 1024;
    now_ns_ += 10 * second_ns;  // earlier copies are long ago: a second's allowance is there
  }
  ~StackCopies() override { ::munmap(stack_, 2 * page); }
  StackCopies(const StackCopies&) = delete;
  StackCopies& operator=(const StackCopies&) = delete;

  [[nodiscard]] std::uint64_t address(std::size_t word) const {
    return reinterpret_cast<std::uint64_t>(stack_) + word * sizeof(std::uint64_t);
  }
  /// The words of a slice from `rsp` on; empty: none was made.
  std::vector<std::uint64_t> copy(std::uint64_t rsp, std::size_t capacity = 8192) {
    Registers registers;
    registers[Register::rsp] = rsp;
    registers[Register::rbx] = 0xb;
    std::vector<std::byte> buffer(capacity);
    const std::size_t used = copy_stack(self_, registers, now_ns_, buffer.data(), buffer.size());
    made_ = used != 0;
    if (!made_) {
      return {};
    }
    profile::StackSlice slice;
    std::memcpy(&slice, buffer.data(), sizeof slice);
    EXPECT_EQ(used, sizeof slice + slice.bytes);
    EXPECT_EQ(slice.registers[Register::rsp], rsp);
    EXPECT_EQ(slice.registers[Register::rbx], 0xbU);
    std::vector<std::uint64_t> found(slice.bytes / sizeof(std::uint64_t));
    if (!found.empty()) {
      std::memcpy(found.data(), buffer.data() + sizeof slice, slice.bytes);
    }
    return found;
  }

  static constexpr std::size_t words = 2 * page / sizeof(std::uint64_t);
  static inline std::uint64_t now_ns_ = 1'000'000 * second_ns;
  test::FakeKernel kernel_;
  ThreadState& self_ = kernel_.add_thread();
  std::uint64_t* stack_ = nullptr;
  bool made_ = false;
};

TEST_F(StackCopies, BeginAtTheStackPointerAndAreAsLongAsTheSettingsSay) {
  const auto copied = copy(address(5));
  ASSERT_EQ(copied.size(), 128U);
  EXPECT_EQ(copied.front(), 0x1005U);
  EXPECT_EQ(copied.back(), 0x1005U + 127);
}

TEST_F(StackCopies, EndWhereTheStackEnds) {
  self_.stack_high = address(20);
  EXPECT_EQ(copy(address(5)).size(), 15U);
}

TEST_F(StackCopies, AreAsLongAsTheirRoom) { EXPECT_EQ(copy(address(0), sizeof(profile::StackSlice) + 80).size(), 10U); }

TEST_F(StackCopies, OfAStackThatIsNotTheThreadsOwnGoAsFarAsItIsMapped) {
  self_.stack_low = self_.stack_high = 0;  // a coroutine's, say
  EXPECT_EQ(copy(address(words - 6)).size(), 6U);
}

TEST_F(StackCopies, OfWhatIsNotMappedHaveTheRegistersOnly) {
  EXPECT_TRUE(copy(address(words)).empty());
  EXPECT_TRUE(made_);
}

TEST_F(StackCopies, ASecondsWorthIsAllowedAtOnceAndThenAsManyASecond) {
  std::uint32_t at_once = 0;
  while (allow_stack_copy(now_ns_)) {
    ASSERT_LE(++at_once, 10U);
  }
  EXPECT_EQ(at_once, 10U);
  EXPECT_TRUE(copy(address(0)).empty());
  EXPECT_FALSE(made_);
  now_ns_ += second_ns / 10;
  EXPECT_FALSE(copy(address(0)).empty());
  EXPECT_TRUE(copy(address(0)).empty()) << "it was the only one";
}

TEST_F(StackCopies, NoneWhereTheSettingsWantNone) {
  runtime().config.stacks_per_s = 0;
  EXPECT_TRUE(copy(address(0)).empty());
  EXPECT_FALSE(made_);
}

}  // namespace
}  // namespace crosstalk::in_target::stack_copies_test
