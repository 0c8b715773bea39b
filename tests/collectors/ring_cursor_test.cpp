// SPDX-License-Identifier: Apache-2.0
#include "collectors/memory_samples/ring_cursor.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <array>
#include <cstring>
#include <vector>

namespace crosstalk::collectors::ring_cursor_test {
namespace {

using Ring = std::array<std::byte, 64>;

/// Writes a record whose bytes behind the header are all `fill`, as the kernel does: over the ring's end if necessary.
void put(Ring& ring, std::uint64_t at, std::uint16_t size, std::uint8_t fill) {
  std::vector<std::byte> record(size, std::byte{fill});
  perf_event_header header{PERF_RECORD_SAMPLE, 0, size};
  std::memcpy(record.data(), &header, sizeof header);
  for (std::size_t i = 0; i < record.size(); ++i) {
    ring[(at + i) % ring.size()] = record[i];
  }
}

TEST(RingCursor, RecordsOneByOneAlsoOverTheEnd) {
  Ring ring{};
  constexpr std::uint64_t begin = 3 * 64 + 24;
  put(ring, begin, 24, 1);
  put(ring, begin + 24, 32, 2);
  std::array<std::byte, 40> out{};
  std::uint64_t tail = begin;
  const std::uint64_t head = begin + 24 + 32;
  auto record = take_ring_record(ring, head, tail, out);
  ASSERT_EQ(record.size(), 24U);
  EXPECT_EQ(record.back(), std::byte{1});
  record = take_ring_record(ring, head, tail, out);
  ASSERT_EQ(record.size(), 32U);
  for (std::size_t i = sizeof(perf_event_header); i < record.size(); ++i) {
    EXPECT_EQ(record[i], std::byte{2});
  }
  EXPECT_EQ(tail, head);
  EXPECT_TRUE(take_ring_record(ring, head, tail, out).empty());
  EXPECT_EQ(tail, head);
}

TEST(RingCursor, WhatCanBeNoRecordIsGivenUpWithAllBehindIt) {
  std::array<std::byte, 40> out{};
  for (const std::uint16_t size : {0, 7, 48, 56}) {  // too short for a header; more than `out`; more than there is
    Ring ring{};
    put(ring, 0, std::max<std::uint16_t>(size, 8), 1);
    std::memcpy(ring.data() + offsetof(perf_event_header, size), &size, sizeof size);
    std::uint64_t tail = 0;
    EXPECT_TRUE(take_ring_record(ring, 48, tail, out).empty()) << size;
    EXPECT_EQ(tail, 48U);
  }
  Ring ring{};
  std::uint64_t tail = 8;
  EXPECT_TRUE(take_ring_record(ring, 8 + 65, tail, out).empty()) << "more than the ring holds";
  EXPECT_EQ(tail, 8U + 65U);
  EXPECT_TRUE(take_ring_record(ring, 5, tail, out).empty()) << "behind what was read already";
  EXPECT_EQ(tail, 5U);
}

}  // namespace
}  // namespace crosstalk::collectors::ring_cursor_test
