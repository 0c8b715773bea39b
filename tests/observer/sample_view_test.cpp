// SPDX-License-Identifier: Apache-2.0
// Accesses are found in this very process, by registers and a stack that the tests make up.
#include "collectors/observer/sample_view.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>

namespace crosstalk::observer::sample_view_test {
namespace {

// Behind instructions that do nothing: mov (%rsp),%rax; mov (%rax),%rcx; jmp self. Aligned so that it lies on one page.
constexpr std::size_t begin = 32;
constexpr std::array<std::uint8_t, 64> make_code() {
  std::array<std::uint8_t, 64> bytes{};
  bytes.fill(0x90);
  std::size_t at = begin;
  for (const std::uint8_t byte : {0x48, 0x8b, 0x04, 0x24, 0x48, 0x8b, 0x08, 0xeb, 0xfe}) {
    bytes[at++] = byte;
  }
  return bytes;
}
alignas(64) constexpr std::array<std::uint8_t, 64> code = make_code();
std::uint64_t data = 0;
constexpr std::uint64_t nowhere = 0x200000000000;  // nothing is mapped there, by the sanitizers neither

class SampleViewTest : public testing::Test {
 protected:
  SampleViewTest() : memory_(::getpid()), maps_(maps_of(::getpid())) {
    sample_.has_registers = true;
    sample_.registers[Register::rip] = reinterpret_cast<std::uint64_t>(code.data()) + begin;
    sample_.registers[Register::rsp] = nowhere;  // only the copy can tell
    const auto address = reinterpret_cast<std::uint64_t>(&data);
    std::memcpy(stack_.data(), &address, sizeof address);
  }

  TargetMemory memory_;
  std::vector<Mapping> maps_;
  PerfSample sample_;
  std::array<std::byte, 128> stack_{};
  std::unique_ptr<in_target::AccessFinder> finder_ = std::make_unique<in_target::AccessFinder>();
};

TEST_F(SampleViewTest, AnAddressOnTheStackComesFromTheSample) {
  sample_.stack = stack_;
  const auto found = SampleView(sample_, memory_, maps_).find(*finder_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->address, reinterpret_cast<std::uint64_t>(&data));
  EXPECT_EQ(found->instruction, reinterpret_cast<std::uint64_t>(code.data()) + begin + 4);
  EXPECT_EQ(found->kind, AccessKind::load);
}

TEST_F(SampleViewTest, WithoutTheStackNothingIsClaimed) {
  EXPECT_FALSE(SampleView(sample_, memory_, maps_).find(*finder_));
}

TEST_F(SampleViewTest, MemoryThatMayHaveChangedIsNotRead) {
  // The same stack, in writable memory: its contents may have changed since.
  sample_.registers[Register::rsp] = reinterpret_cast<std::uint64_t>(stack_.data());
  const std::vector<Mapping> maps = maps_of(::getpid());
  ASSERT_TRUE(mapping_at(maps, reinterpret_cast<std::uint64_t>(stack_.data())) != nullptr);
  const auto found = SampleView(sample_, memory_, maps).find(*finder_);
  EXPECT_TRUE(!found || found->address != reinterpret_cast<std::uint64_t>(&data));
}

TEST_F(SampleViewTest, AnAddressWhereNothingIsMappedIsNoAccess) {
  std::memcpy(stack_.data(), &nowhere, sizeof nowhere);
  sample_.stack = stack_;
  SampleView view(sample_, memory_, maps_);
  EXPECT_FALSE(view.find(*finder_));
  EXPECT_TRUE(view.missed_mapping());
}

}  // namespace
}  // namespace crosstalk::observer::sample_view_test
