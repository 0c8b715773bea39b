// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/words.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <utility>

#include "base/random.h"

namespace crosstalk::watch_policy::words_test {
namespace {

constexpr int draws = 40'000;

SampledAccess at(std::uint32_t offset, std::uint32_t width) { return {offset, width, AccessKind::load, false, false}; }

Suspicion partner_at(std::uint8_t offset) {
  Suspicion suspicion;
  suspicion.other_thread = true;
  suspicion.partner = {2, offset, 8, AccessKind::store, 1};
  return suspicion;
}

TEST(SlotPlan, TwoWordsAWatch) {
  EXPECT_EQ(SlotPlan::of(0).slots, 0U);
  EXPECT_EQ(SlotPlan::of(1).slots, 1U);
  EXPECT_EQ(SlotPlan::of(2).slots, 1U);
  EXPECT_EQ(SlotPlan::of(3).slots, 1U);
  EXPECT_EQ(SlotPlan::of(3).registers, 2U);
  EXPECT_EQ(SlotPlan::of(4).slots, 2U);
  EXPECT_EQ(SlotPlan::of(9).registers, 4U);
}

TEST(SlotPlan, SuspectedLinesAndExploringDoNotTakeEachOthersPlace) {
  const SlotPlan two = SlotPlan::of(4);
  EXPECT_EQ(two.first(true), 0U);
  EXPECT_EQ(two.last(true), 1U);
  EXPECT_EQ(two.first(false), 1U);
  EXPECT_EQ(two.last(false), 2U);
  const SlotPlan one = SlotPlan::of(2);
  for (const bool suspected : {false, true}) {
    EXPECT_EQ(one.first(suspected), 0U);
    EXPECT_EQ(one.last(suspected), 1U);
  }
}

TEST(Words, TheFirstIsTheSampledBytesAsFarAsARegisterReaches) {
  const auto first = [](std::uint32_t offset, std::uint32_t width) {
    const profile::WatchWord word = choose_words(at(offset, width), {}, 4, 1).word[0];
    return std::pair<int, int>(word.offset, word.length);
  };
  EXPECT_EQ(first(12, 4), std::pair(12, 4));
  EXPECT_EQ(first(13, 1), std::pair(13, 1));
  EXPECT_EQ(first(13, 2), std::pair(12, 2));
  EXPECT_EQ(first(32, 32), std::pair(32, 8));
  EXPECT_EQ(first(5, 0), std::pair(5, 1));  // unknown width
}

/// How often each word of the line was the second, and the sum of the probabilities recorded for it.
struct Seconds {
  std::array<int, 8> drawn{};
  std::array<double, 8> recorded{};
};

Seconds seconds_of(const Suspicion& suspicion) {
  Seconds result;
  std::uint64_t random = 7;
  for (int i = 0; i < draws; ++i) {
    const WordChoice choice = choose_words(at(16, 8), suspicion, 4, next_random(random));
    EXPECT_EQ(choice.words, 2U);
    EXPECT_EQ(choice.word[0].probability, 1);
    ++result.drawn[choice.word[1].offset / 8];
    result.recorded[choice.word[1].offset / 8] = choice.word[1].probability;
  }
  return result;
}

TEST(Words, TheSecondIsAnyOther) {
  const Seconds seconds = seconds_of({});
  EXPECT_EQ(seconds.drawn[2], 0);
  for (const std::size_t word : {0, 1, 3, 4, 5, 6, 7}) {
    EXPECT_NEAR(seconds.recorded[word], 1.0 / 7, 1e-6);
    EXPECT_NEAR(seconds.drawn[word], draws / 7.0, draws * 0.01);
  }
}

/// By offset and length: how often they were drawn, and the probability recorded.
std::map<std::pair<int, int>, std::pair<int, double>> pieces_of(const SampledAccess& access,
                                                                const Suspicion& suspicion) {
  std::map<std::pair<int, int>, std::pair<int, double>> pieces;
  std::uint64_t random = 7;
  for (int i = 0; i < draws; ++i) {
    const profile::WatchWord second = choose_words(access, suspicion, 4, next_random(random)).word[1];
    auto& [drawn, recorded] = pieces[{second.offset, second.length}];
    ++drawn;
    recorded = second.probability;
  }
  return pieces;
}

TEST(Words, NeighboursInTheSampledWordAreDrawnAsWell) {
  const auto beside_four = pieces_of(at(20, 4), {});
  EXPECT_EQ(beside_four.size(), 8U);
  EXPECT_TRUE(beside_four.contains({16, 4}));
  EXPECT_FALSE(beside_four.contains({16, 8}));
  const auto beside_one = pieces_of(at(21, 1), {});
  EXPECT_EQ(beside_one.size(), 10U);
  for (const auto& piece : {std::pair(20, 1), std::pair(22, 2), std::pair(16, 4)}) {
    EXPECT_TRUE(beside_one.contains(piece)) << piece.first;
  }
  for (const auto& [piece, seen] : beside_one) {
    EXPECT_NEAR(seen.second, 0.1, 1e-6);
    EXPECT_NEAR(seen.first, draws * 0.1, draws * 0.01);
  }
}

TEST(Words, APartnerInTheSampledWordIsDrawnAsOftenAsRecorded) {
  Suspicion suspicion = partner_at(18);
  suspicion.partner.width = 1;
  const auto pieces = pieces_of(at(20, 2), suspicion);  // beside it: 2 bytes at 22, 4 at 16, of which one is named
  const double by_chance = 0.25 / 9;
  EXPECT_EQ(pieces.size(), 10U);
  const auto& named = pieces.at({18, 1});
  const auto& around = pieces.at({16, 4});
  EXPECT_NEAR(named.second, 0.75 + by_chance, 1e-6);
  EXPECT_NEAR(around.second, 0.75 + by_chance, 1e-6);
  EXPECT_NEAR(named.first + around.first, draws * named.second, draws * 0.01);
  EXPECT_NEAR(pieces.at({22, 2}).second, by_chance, 1e-6);
  EXPECT_NEAR(pieces.at({0, 8}).second, by_chance, 1e-6);
}

TEST(Words, ThePartnersWordIsDrawnAsOftenAsRecorded) {
  const Seconds seconds = seconds_of(partner_at(40));
  EXPECT_NEAR(seconds.recorded[5], 0.75 + 0.25 / 7, 1e-6);
  EXPECT_NEAR(seconds.drawn[5], draws * (0.75 + 0.25 / 7), draws * 0.01);
  EXPECT_NEAR(seconds.recorded[0], 0.25 / 7, 1e-6);
  EXPECT_NEAR(seconds.drawn[0], draws * 0.25 / 7, draws * 0.01);
}

TEST(Words, APartnerAtTheSampledBytesNamesNoSecond) {
  const Seconds seconds = seconds_of(partner_at(16));
  EXPECT_EQ(seconds.drawn[2], 0);
  EXPECT_NEAR(seconds.recorded[5], 1.0 / 7, 1e-6);
}

TEST(Words, WithOneRegisterACoinDecides) {
  std::uint64_t random = 7;
  int sampled = 0;
  for (int i = 0; i < draws; ++i) {
    const WordChoice choice = choose_words(at(16, 8), partner_at(40), 1, next_random(random));
    EXPECT_EQ(choice.words, 1U);
    const bool own = choice.word[0].offset == 16;
    sampled += own ? 1 : 0;
    if (own || choice.word[0].offset == 40) {
      EXPECT_NEAR(choice.word[0].probability, own ? 0.5 : (0.75 + 0.25 / 7) / 2, 1e-6);
    }
  }
  EXPECT_NEAR(sampled, draws * 0.5, draws * 0.01);
}

}  // namespace
}  // namespace crosstalk::watch_policy::words_test
