// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/probing.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/random.h"

namespace crosstalk::watch_policy::probing_test {
namespace {

TEST(Probing, HalfOfTheSamplesProbeOverAllOctavesAlike) {
  constexpr int draws = 60'000;
  std::array<int, gap_octaves> octaves{};
  int wanted = 0;
  std::uint64_t state = random_state(7, 1);
  for (int i = 0; i < draws; ++i) {
    const ProbePlan plan = plan_probe(next_random(state));
    ASSERT_GE(plan.gap_ns, 1U << shortest_gap_log);
    ASSERT_LT(plan.gap_ns, 1U << (shortest_gap_log + gap_octaves));
    wanted += plan.wanted ? 1 : 0;
    ++octaves.at(static_cast<std::size_t>(std::log2(plan.gap_ns)) - shortest_gap_log);
  }
  EXPECT_NEAR(wanted, draws / 2, draws / 50);
  for (const int count : octaves) {
    EXPECT_NEAR(count, draws / static_cast<int>(gap_octaves), draws / 50);
  }
}

}  // namespace
}  // namespace crosstalk::watch_policy::probing_test
