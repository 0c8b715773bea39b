// SPDX-License-Identifier: Apache-2.0
// Traffic by level, compared with the source's own counts for its programs (its sections 3.1 to 3.3).
#include "models/stream_traffic.h"

#include <gtest/gtest.h>

#include <array>

namespace crosstalk::models::stream_traffic_test {
namespace {

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr CacheSizes source_caches = {64 * kib, 8 * mib, 0};
constexpr CacheSizes usual_caches = {32 * kib, 1 * mib, 16 * mib};

Stream stream(std::uint64_t begin, std::uint64_t bytes, bool stores, std::int64_t stride = 8) {
  Stream s;
  s.stride = stride;
  s.width = 8;
  s.low = s.position = begin;
  s.high = begin + bytes - s.width;
  s.loads = !stores;
  s.stores = stores;
  return s;
}

/// a(i,j,k) = f(c(i,j-n..j+n,k)): rows of 3610 doubles, 81 rows in a plane, 168 planes.
std::vector<Stream> stencil(int before, int behind) {
  constexpr std::uint64_t row = std::uint64_t{3610} * 8;
  constexpr std::uint64_t array = row * 81 * 168;
  std::vector<Stream> streams = {stream(1U << 30U, array, true)};
  for (int j = -before; j <= behind; ++j) {
    Stream c = stream(3UL << 30U, array, false);
    c.position += 40 * row + static_cast<std::uint64_t>(j + before) * row;
    streams.push_back(c);
  }
  return streams;
}

TEST(StreamTraffic, Source3M2L2) {
  const auto found = stream_traffic(stencil(1, 1), {}, source_caches);
  ASSERT_TRUE(found.bytes) << found.unknown;
  EXPECT_DOUBLE_EQ(found.bytes->memory, 3 * 8);
  EXPECT_DOUBLE_EQ(found.bytes->l2, (3 + 2) * 8);
}

TEST(StreamTraffic, Source3M12L2) {
  const auto found = stream_traffic(stencil(6, 6), {}, source_caches);
  ASSERT_TRUE(found.bytes) << found.unknown;
  EXPECT_DOUBLE_EQ(found.bytes->memory, 3 * 8);
  EXPECT_DOUBLE_EQ(found.bytes->l2, (3 + 12) * 8);
}

TEST(StreamTraffic, Source3M6L2) {
  const auto found = stream_traffic(stencil(3, 3), {}, source_caches);
  ASSERT_TRUE(found.bytes) << found.unknown;
  EXPECT_DOUBLE_EQ(found.bytes->memory, 3 * 8);
  EXPECT_DOUBLE_EQ(found.bytes->l2, (3 + 6) * 8);
}

TEST(StreamTraffic, SourceInMemoryWithoutFetchingWhatIsStored) {
  std::vector<Stream> streams = {stream(1U << 30U, 64000000, true), stream(3UL << 30U, 64000000, false)};
  streams[0].streaming = true;
  const auto found = stream_traffic(streams, {}, source_caches);
  ASSERT_TRUE(found.bytes);
  EXPECT_DOUBLE_EQ(found.bytes->memory, 16);
}

TEST(StreamTraffic, ATriadComesFromWhereItsArraysFit) {
  struct Case {
    std::uint64_t bytes;  // of each of three arrays
    double l2, l3, memory;
  };
  // a = b + s * c: two loads, a fetch and a write-back of 8 bytes.
  for (const Case& c :
       {Case{4 * kib, 0, 0, 0}, Case{64 * kib, 32, 0, 0}, Case{2 * mib, 32, 32, 0}, Case{64 * mib, 32, 32, 32}}) {
    const std::vector<Stream> streams = {stream(1UL << 30U, c.bytes, true), stream(2UL << 30U, c.bytes, false),
                                         stream(3UL << 30U, c.bytes, false)};
    const auto found = stream_traffic(streams, {}, usual_caches);
    ASSERT_TRUE(found.bytes) << c.bytes;
    EXPECT_DOUBLE_EQ(found.bytes->l2, c.l2) << c.bytes;
    EXPECT_DOUBLE_EQ(found.bytes->l3, c.l3) << c.bytes;
    EXPECT_DOUBLE_EQ(found.bytes->memory, c.memory) << c.bytes;
  }
}

TEST(StreamTraffic, InPlaceIsFetchedOnceAndWrittenBack) {
  std::vector<Stream> streams = {stream(1UL << 30U, 64 * mib, false), stream(1UL << 30U, 64 * mib, true)};
  EXPECT_DOUBLE_EQ(stream_traffic(streams, {}, usual_caches).bytes->memory, 16);
}

TEST(StreamTraffic, UnrolledAccessesOfOneLineAreOneFetch) {
  std::vector<Stream> streams;
  for (std::uint64_t at = 0; at < 4; ++at) {
    streams.push_back(stream((1UL << 30U) + 8 * at, 64 * mib, false, 32));
  }
  EXPECT_DOUBLE_EQ(stream_traffic(streams, {}, usual_caches).bytes->memory, 32);
}

/// Four accesses of 32 bytes each 128: an unrolled body goes over all lines of an array.
std::vector<Stream> unrolled(std::uint64_t begin, std::uint64_t bytes, std::int64_t stride = 128) {
  std::vector<Stream> streams;
  for (std::uint64_t at = 0; at < 128; at += 32) {
    Stream s = stream(begin + at, bytes - 96, false, stride);
    s.width = 32;
    streams.push_back(s);
  }
  return streams;
}

TEST(StreamTraffic, AnUnrolledBodyMovesEachOfItsLines) {
  const auto found = stream_traffic(unrolled(1U << 20U, 256 * kib), {}, usual_caches);
  ASSERT_TRUE(found.bytes) << found.unknown;
  EXPECT_DOUBLE_EQ(found.bytes->l2, 128);
  EXPECT_DOUBLE_EQ(found.bytes->l3, 0);
}

TEST(StreamTraffic, AnUnrolledBodyGoesOverAnArrayOnce) {
  const auto found = stream_traffic(unrolled(1U << 20U, 20 * kib), {}, usual_caches);  // four times 20 KiB is too much
  ASSERT_TRUE(found.bytes) << found.unknown;
  EXPECT_DOUBLE_EQ(found.bytes->l2, 0);
}

TEST(StreamTraffic, OfALargeStructOnlyLinesThatAreAccessedMove) {
  const auto found = stream_traffic(unrolled(1U << 20U, 256 * kib, 512), {}, usual_caches);
  ASSERT_TRUE(found.bytes) << found.unknown;
  EXPECT_DOUBLE_EQ(found.bytes->l2, 128);
}

TEST(StreamTraffic, ALongStrideMovesAWholeLine) {
  const std::vector<Stream> streams = {stream(1UL << 30U, 256 * mib, false, 4096)};
  const auto found = stream_traffic(streams, {}, usual_caches);
  ASSERT_TRUE(found.bytes);
  EXPECT_DOUBLE_EQ(found.bytes->l2, 64);  // 65536 lines are 4 MiB: more than L2, less than L3
  EXPECT_DOUBLE_EQ(found.bytes->memory, 0);
  EXPECT_DOUBLE_EQ(found.served[2], 1);
}

TEST(StreamTraffic, DownwardsIsAsUpwards) {
  std::vector<Stream> streams = stencil(1, 1);
  for (Stream& s : streams) {
    s.stride = -8;
  }
  const auto found = stream_traffic(streams, {}, source_caches);
  EXPECT_DOUBLE_EQ(found.bytes->memory, 3 * 8);
  EXPECT_DOUBLE_EQ(found.bytes->l2, (3 + 2) * 8);
}

TEST(StreamTraffic, NearACachesSizeNothingIsSaid) {
  const std::vector<Stream> streams = {stream(1UL << 30U, 1 * mib, false)};
  const auto found = stream_traffic(streams, {}, usual_caches);
  EXPECT_FALSE(found.bytes);
  EXPECT_FALSE(found.unknown.empty());
}

TEST(StreamTraffic, ScatteredAccessesComeFromWhereTheirRangeFits) {
  const Scattered near{0, 16 * kib - 64, false};
  EXPECT_EQ(stream_traffic({}, std::array{near}, usual_caches).bytes->l2, 0);
  const Scattered far{0, 64 * mib - 64, true};
  const auto found = stream_traffic({}, std::array{far}, usual_caches);
  EXPECT_DOUBLE_EQ(found.bytes->memory, 0.75 * 128);  // a quarter is in L3; lines are fetched and written back
  EXPECT_DOUBLE_EQ(found.served[3], 0.75);
  EXPECT_DOUBLE_EQ(found.bytes->l2, (1 - 32.0 / 65536) * 128);
}

TEST(StreamTraffic, NoStreamsMoveNothing) {
  const auto found = stream_traffic({}, {}, usual_caches);
  ASSERT_TRUE(found.bytes);
  EXPECT_EQ(found.bytes->l2, 0);
}

}  // namespace
}  // namespace crosstalk::models::stream_traffic_test
