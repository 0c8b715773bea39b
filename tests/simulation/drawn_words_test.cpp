// SPDX-License-Identifier: Apache-2.0
// Watched words of a line are drawn with the recorded probability.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/simulation/sample_at.h"
#include "tests/simulation/watching.h"

namespace crosstalk::simulation::drawn_words_test {
namespace {

TEST(DrawnWords, AreDrawnWithTheProbabilityThatIsRecorded) {
  constexpr int draws = 20'000;
  int drawn = 0;
  double recorded = 0;
  for (std::uint64_t seed = 0; seed < draws; ++seed) {
    Watching watching(Observer{}, 2, word_bytes, seed);
    auto sample = sample_at(0, 1, 0, 1000);
    watching.sample(sample, sample.cpu_ns);
    const auto watches = watching.take_watches();
    ASSERT_EQ(watches.size(), 1U);
    ASSERT_EQ(watches[0].words.size(), 2U);
    EXPECT_EQ(watches[0].words[0].offset, 0);
    EXPECT_NE(watches[0].words[1].offset, 0);
    drawn += watches[0].words[1].offset == 3 * word_bytes ? 1 : 0;
    recorded = watches[0].words[1].probability;
  }
  EXPECT_NEAR(recorded, 1.0 / 7, 1e-6);
  EXPECT_NEAR(drawn / static_cast<double>(draws), recorded, 5 * std::sqrt(recorded / draws));
}

TEST(DrawnWords, APartnersWordIsDrawnThreeTimesInFour) {
  constexpr int draws = 20'000;
  int drawn = 0;
  for (std::uint64_t seed = 0; seed < draws; ++seed) {
    Watching watching(Observer{}, 2, word_bytes, seed);
    auto partner = sample_at(1, 1, 4, 1000, AccessKind::store);
    watching.sample(partner, partner.cpu_ns);
    auto sample = sample_at(0, 1, 0, 2000);
    watching.sample(sample, sample.cpu_ns);
    ASSERT_NE(sample.flags & profile::sample_suspected, 0);
    const auto watches = watching.take_watches();
    ASSERT_EQ(watches.size(), 2U);
    const bool named = watches[1].words[1].offset == 4 * word_bytes;
    drawn += named ? 1 : 0;
    EXPECT_NEAR(watches[1].words[1].probability, named ? 0.75 + 0.25 / 7 : 0.25 / 7, 1e-6);
  }
  EXPECT_NEAR(drawn / static_cast<double>(draws), 0.75 + 0.25 / 7, 0.015);
}

}  // namespace
}  // namespace crosstalk::simulation::drawn_words_test
