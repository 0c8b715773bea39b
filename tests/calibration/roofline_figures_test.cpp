// SPDX-License-Identifier: Apache-2.0
// Knees of re-order buffers, sizes of sparse matrices, numbers of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "collectors/calibration/bench.h"
#include "collectors/calibration/knee.h"
#include "collectors/calibration/sparse_size.h"

namespace crosstalk::collectors::calibration::roofline_figures_test {
namespace {

constexpr double latency_s = 100e-9, fast = 1e11;

/// A buffer of `size`: rounds of one latency up to it, and of two behind, with a step of `width`.
std::vector<BufferTime> rounds(unsigned size, unsigned most, unsigned width = 1, double fillers_per_s = fast) {
  std::vector<BufferTime> times;
  for (unsigned n = 16; n <= most; n += 16) {
    const double separate = std::clamp((static_cast<double>(n) - size) / width + 0.5, 0.0, 1.0);
    const double filling = 2 * n / fillers_per_s;
    times.push_back({n, std::max(latency_s, filling) + separate * latency_s});
  }
  return times;
}

TEST(Knee, IsWhereRoundsBecomeTwiceAsLong) {
  const auto knee = find_knee(rounds(224, 800), fast);
  ASSERT_TRUE(knee);
  EXPECT_NEAR(knee->fillers, 224, 16);
  EXPECT_LE(knee->low, knee->fillers);
  EXPECT_GE(knee->high, knee->fillers);
  EXPECT_LT(knee->high - knee->low, 33);
}

TEST(Knee, OfAWideStepHasAWideInterval) {
  const auto knee = find_knee(rounds(300, 800, 120), fast);
  ASSERT_TRUE(knee);
  EXPECT_NEAR(knee->fillers, 300, 16);
  EXPECT_NEAR(knee->high - knee->low, 60, 20);
}

TEST(Knee, IsSeenAmongDisturbedTimes) {
  auto times = rounds(224, 800);
  for (std::size_t i = 0; i < times.size(); i += 3) {
    times[i].seconds *= 1.8;
  }
  const auto knee = find_knee(times, fast);
  ASSERT_TRUE(knee);
  EXPECT_NEAR(knee->fillers, 224, 32);
}

// At 380 fillers of 8e9 a second a round of both loads together takes 95 ns, and soon longer than a latency.
TEST(Knee, IsSeenWhereFillersTakeAsLongAsTheLoads) {
  const double slow = 8e9;
  auto times = rounds(380, most_fillers(latency_s, slow), 1, slow);
  for (BufferTime& time : times) {
    time.seconds = std::min(time.seconds, 2 * latency_s);
  }
  const auto knee = find_knee(times, slow);
  ASSERT_TRUE(knee);
  EXPECT_NEAR(knee->fillers, 380, 16);
}

TEST(Knee, IsAbsentWithoutAStep) {
  EXPECT_FALSE(find_knee(rounds(2000, 800), fast));
  EXPECT_FALSE(find_knee(rounds(224, 96), fast));  // too few
  EXPECT_FALSE(find_knee(std::vector<BufferTime>{}, fast));
  EXPECT_FALSE(find_knee(rounds(224, 800), 0));
  // Slow fillers take as long as a latency long before the buffer is full.
  EXPECT_FALSE(find_knee(rounds(2000, 800, 1, 4e9), 4e9));
}

TEST(Knee, IsNotSoughtWhereFillersHideTheLatency) {
  EXPECT_EQ(most_fillers(latency_s, 4e9), 320U);
  EXPECT_EQ(most_fillers(latency_s, 1e12), 1600U);
  EXPECT_EQ(most_fillers(0, fast), 0U);
}

TEST(DenseSize, FillsALevelWithTheVectorInAnother) {
  constexpr std::uint64_t matrix = 1U << 20, vector = 1U << 17;
  const auto near = dense_size(matrix, vector, true);
  ASSERT_TRUE(near);
  EXPECT_EQ(near->columns, 64U);
  EXPECT_LE(bytes_in_memory(near->rows, 64, std::uint64_t{64} * near->rows), matrix);
  EXPECT_GT(bytes_in_memory(near->rows + 1, 64, std::uint64_t{64} * (near->rows + 1)), matrix);
  const auto far = dense_size(matrix, vector, false);
  ASSERT_TRUE(far);
  // One row with the vector fills the vector's level.
  EXPECT_NEAR(static_cast<double>(bytes_in_memory(1, far->columns, far->columns)), vector, vector / 16.0);
  EXPECT_LE(bytes_in_memory(far->rows, far->columns, std::uint64_t{far->rows} * far->columns), matrix);
  const auto same = dense_size(vector, vector, false);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->rows, 1U);
  EXPECT_FALSE(dense_size(100, 100, true));
  EXPECT_FALSE(dense_size(100, 100, false));
}

TEST(PairShape, FillsALevel) {
  for (const std::uint64_t bytes : {24U << 10, 512U << 10, 3U << 20, 64U << 20}) {
    for (const std::uint32_t q : {8U, 64U}) {
      const auto shape = pair_shape(bytes, q);
      ASSERT_TRUE(shape) << bytes << " " << q << " " << shape.error().message;
      const std::uint64_t nonzeros = std::uint64_t{shape->block_rows} * shape->columns;
      EXPECT_LE(bytes_in_memory(nonzeros / q, shape->columns, nonzeros), bytes);
      EXPECT_GT(bytes_in_memory(nonzeros / q, shape->columns, nonzeros), bytes / 2);
      EXPECT_EQ(shape->columns % (8 * q), 0U);
      EXPECT_TRUE(bytes > (512U << 10) ? models::roofline::worst_pattern(*shape).has_value() : true);
    }
  }
  EXPECT_FALSE(pair_shape(4096, 64));
}

TEST(ThreadCounts, AreOneTheirDoublesAndAll) {
  EXPECT_EQ(thread_counts(1), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(thread_counts(2), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(thread_counts(6), (std::vector<std::uint32_t>{1, 2, 4, 6}));
  EXPECT_EQ(thread_counts(8), (std::vector<std::uint32_t>{1, 2, 4, 8}));
  EXPECT_EQ(count_thread_flops(1), 0U);
  EXPECT_EQ(count_thread_flops(2), 0U);
  EXPECT_GT(count_thread_flops(6), count_thread_flops(4));
}

}  // namespace
}  // namespace crosstalk::collectors::calibration::roofline_figures_test
