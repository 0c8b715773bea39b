// SPDX-License-Identifier: Apache-2.0
#include "collectors/memory_samples/ibs_op.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace crosstalk::collectors::ibs_op_test {
namespace {

constexpr std::uint64_t rip_invalid = std::uint64_t{1} << 38U;
constexpr std::uint64_t load = 1, store = 2, missed = 1U << 7U, address_valid = 1U << 17U, prefetch = 1U << 21U;
constexpr std::uint64_t eight_bytes = std::uint64_t{4} << 22U;
constexpr std::uint64_t hundred_cycles = std::uint64_t{100} << 32U;

/// As the kernel copies them: capabilities, then the registers from IbsOpCtl on.
std::vector<std::byte> raw(std::uint64_t data, std::uint64_t data3) {
  std::vector<std::byte> bytes(sizeof(std::uint32_t));
  for (const std::uint64_t word : {std::uint64_t{0x80000}, std::uint64_t{0x401234}, data, std::uint64_t{0}, data3,
                                   std::uint64_t{0x7f0000001040}, std::uint64_t{0x99}}) {
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof word);
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
  return bytes;
}

TEST(IbsOp, ALoadThatMissedHasItsLatency) {
  const auto op = decode_ibs_op(raw(0, load | missed | address_valid | eight_bytes | hundred_cycles));
  ASSERT_TRUE(op);
  EXPECT_EQ(op->ip, 0x401234U);
  EXPECT_EQ(op->address, 0x7f0000001040U);
  EXPECT_EQ(op->kind, AccessKind::load);
  EXPECT_EQ(op->width, 8U);
  EXPECT_EQ(op->latency_cycles, 100U);
  EXPECT_TRUE(op->missed);
  EXPECT_FALSE(decode_ibs_op(raw(0, load | address_valid))->missed);
}

TEST(IbsOp, WhatDidNotMissHasNone) {
  EXPECT_EQ(decode_ibs_op(raw(0, load | address_valid | hundred_cycles))->latency_cycles, 0U);
  EXPECT_EQ(decode_ibs_op(raw(0, store | missed | address_valid | hundred_cycles))->latency_cycles, 0U);
}

TEST(IbsOp, AnUpdateIsBoth) {
  EXPECT_EQ(decode_ibs_op(raw(0, load | store | address_valid))->kind, AccessKind::load_store);
  EXPECT_EQ(decode_ibs_op(raw(0, store | address_valid))->kind, AccessKind::store);
}

TEST(IbsOp, WhatTouchesNoMemoryHasNoAddress) {
  for (const std::uint64_t data3 : {std::uint64_t{0}, load | missed, load | prefetch | address_valid}) {
    const auto op = decode_ibs_op(raw(0, data3));
    ASSERT_TRUE(op);
    EXPECT_EQ(op->address, 0U);
    EXPECT_EQ(op->kind, AccessKind::none);
  }
}

TEST(IbsOp, AnInstructionThatTheProcessorCouldNotKeepIsNotKnown) {
  EXPECT_EQ(decode_ibs_op(raw(rip_invalid, load | address_valid))->ip, 0U);
}

TEST(IbsOp, WidthsThatThereAreNoneOfAreNotKnown) {
  constexpr unsigned code = 22;
  EXPECT_EQ(decode_ibs_op(raw(0, load | address_valid))->width, 0U);
  EXPECT_EQ(decode_ibs_op(raw(0, load | address_valid | std::uint64_t{1} << code))->width, 1U);
  EXPECT_EQ(decode_ibs_op(raw(0, load | address_valid | std::uint64_t{7} << code))->width, 64U);
  EXPECT_EQ(decode_ibs_op(raw(0, load | address_valid | std::uint64_t{15} << code))->width, 0U);
}

TEST(IbsOp, TooFewBytesAreNone) {
  std::vector<std::byte> bytes = raw(0, load);
  bytes.resize(bytes.size() - sizeof(std::uint64_t));  // older processors have no more
  EXPECT_TRUE(decode_ibs_op(bytes));
  bytes.resize(bytes.size() - 1);
  EXPECT_FALSE(decode_ibs_op(bytes));
  EXPECT_FALSE(decode_ibs_op({}));
}

}  // namespace
}  // namespace crosstalk::collectors::ibs_op_test
