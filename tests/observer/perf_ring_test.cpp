// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/perf_ring.h"

#include <gtest/gtest.h>

#include <array>

namespace crosstalk::observer::perf_ring_test {
namespace {

constexpr std::size_t ring_bytes = 16;

std::array<std::byte, ring_bytes> counting_ring() {
  std::array<std::byte, ring_bytes> ring{};
  for (std::size_t i = 0; i < ring_bytes; ++i) {
    ring[i] = static_cast<std::byte>(i);
  }
  return ring;
}

TEST(PerfRing, BytesBetweenTailAndHeadAreCopied) {
  const auto ring = counting_ring();
  std::vector<std::byte> out;
  std::uint64_t tail = 2;
  EXPECT_TRUE(copy_ring(ring, 5, tail, out));
  EXPECT_EQ(tail, 5U);
  EXPECT_EQ(out, (std::vector<std::byte>{std::byte{2}, std::byte{3}, std::byte{4}}));
}

TEST(PerfRing, ARecordMayGoOnAtTheBeginning) {
  const auto ring = counting_ring();
  std::vector<std::byte> out;
  std::uint64_t tail = ring_bytes * 3 + 14;
  EXPECT_TRUE(copy_ring(ring, ring_bytes * 4 + 2, tail, out));
  EXPECT_EQ(out, (std::vector<std::byte>{std::byte{14}, std::byte{15}, std::byte{0}, std::byte{1}}));
}

TEST(PerfRing, AWholeRingCanBeRead) {
  const auto ring = counting_ring();
  std::vector<std::byte> out;
  std::uint64_t tail = 8;
  EXPECT_TRUE(copy_ring(ring, 8 + ring_bytes, tail, out));
  EXPECT_EQ(out.size(), ring_bytes);
  EXPECT_EQ(out.front(), std::byte{8});
  EXPECT_EQ(out.back(), std::byte{7});
}

TEST(PerfRing, MoreThanThereCanBeIsGivenUp) {
  const auto ring = counting_ring();
  std::vector<std::byte> out;
  std::uint64_t tail = 8;
  EXPECT_FALSE(copy_ring(ring, 8 + ring_bytes + 1, tail, out));
  EXPECT_EQ(tail, 8 + ring_bytes + 1);
  EXPECT_TRUE(out.empty());
  EXPECT_FALSE(copy_ring(ring, 3, tail, out));  // a head that went back
  EXPECT_EQ(tail, 3U);
}

}  // namespace
}  // namespace crosstalk::observer::perf_ring_test
