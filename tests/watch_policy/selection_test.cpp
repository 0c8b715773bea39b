// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/selection.h"

#include <gtest/gtest.h>

#include <vector>

namespace crosstalk::watch_policy::selection_test {
namespace {

constexpr int draws = 20'000;

Suspicion known_line(std::uint32_t duds = 0, std::uint32_t hits = 0, bool store_seen = true) {
  Suspicion known;
  known.other_thread = true;
  known.store_seen = store_seen;
  known.duds = duds;
  known.hits = hits;
  known.partner = {2, 8, 8, AccessKind::store, 1000};
  return known;
}

TEST(Suspected, IsALineThatAnotherThreadWasSampledOnLately) {
  EXPECT_FALSE(is_suspected({}, 1000));
  EXPECT_TRUE(is_suspected(known_line(), 1000));
  EXPECT_TRUE(is_suspected(known_line(), 2999));
  EXPECT_FALSE(is_suspected(known_line(), 3000));
}

TEST(Suspected, NotForEverWithoutAnExchange) {
  EXPECT_TRUE(is_suspected(known_line(3), 1000));
  EXPECT_FALSE(is_suspected(known_line(4), 1000));
  EXPECT_TRUE(is_suspected(known_line(1, 0, false), 1000));
  EXPECT_FALSE(is_suspected(known_line(2, 0, false), 1000));
}

TEST(Missed, IsNothingWhereNobodyStores) {
  EXPECT_TRUE(would_miss_exchange(known_line(), true));
  EXPECT_FALSE(would_miss_exchange(known_line(0, 0, false), true));
  EXPECT_FALSE(would_miss_exchange(known_line(), false));
}

TEST(Method, SaysWhichSamplesBeginAWatch) {
  using profile::Partner;
  EXPECT_TRUE(begins_watch(Partner::automatic, AccessKind::load, false));
  EXPECT_FALSE(begins_watch(Partner::next_access, AccessKind::load, true));
  EXPECT_TRUE(begins_watch(Partner::next_access, AccessKind::load_store, false));
  EXPECT_FALSE(begins_watch(Partner::next_store, AccessKind::store, true));
  EXPECT_TRUE(begins_watch(Partner::next_store, AccessKind::load, false));
  EXPECT_FALSE(begins_watch(Partner::board, AccessKind::load, false));
  EXPECT_TRUE(begins_watch(Partner::board, AccessKind::load, true));
}

double drawn_share(const SampledAccess& access, const Suspicion& known, bool suspected) {
  std::uint64_t random = 7;
  int drawn = 0;
  for (int i = 0; i < draws; ++i) {
    drawn += is_drawn(access, known, suspected, static_cast<std::uint64_t>(i), random) ? 1 : 0;
  }
  return drawn / static_cast<double>(draws);
}

TEST(Drawn, WellKnownLinesLessAndLessOften) {
  const SampledAccess access{0, 8, AccessKind::load, false, false};
  EXPECT_EQ(drawn_share(access, known_line(0, 64), true), 1);
  EXPECT_NEAR(drawn_share(access, known_line(0, 65), true), 0.5, 0.02);
  EXPECT_NEAR(drawn_share(access, known_line(0, 128), true), 1 / 3.0, 0.02);
  EXPECT_NEAR(drawn_share(access, known_line(0, 5000), true), 0.25, 0.02);
}

TEST(Drawn, OwnStacksAreExploredSeldom) {
  const SampledAccess access{0, 8, AccessKind::load, false, true};
  EXPECT_NEAR(drawn_share(access, {}, false), 1 / 16.0, 1e-3);
  EXPECT_EQ(drawn_share(access, known_line(), true), 1);
}

TEST(Horizon, OfExploredLinesIsMostlyBrief) {
  constexpr std::uint64_t whole_ns = 20'000'000;
  std::uint64_t random = 7;
  int whole = 0;
  for (int i = 0; i < draws; ++i) {
    EXPECT_EQ(choose_horizon(true, whole_ns, random), whole_ns);
    const std::uint64_t ns = choose_horizon(false, whole_ns, random);
    EXPECT_TRUE(ns == whole_ns || ns == 500'000) << ns;
    whole += ns == whole_ns ? 1 : 0;
  }
  EXPECT_NEAR(whole / static_cast<double>(draws), 1 / 32.0, 0.006);
}

TEST(ArmedDraw, TakesAllWhereThereIsRoom) {
  std::uint64_t random = 7;
  ArmedDraw draw(most_armed, false);
  for (std::uint32_t i = 0; i < most_armed; ++i) {
    EXPECT_TRUE(draw.take(random));
  }
  EXPECT_TRUE(draw.complete());
  EXPECT_FALSE(draw.take(random));
}

TEST(ArmedDraw, NobodyMayBeLeft) {
  std::uint64_t random = 7;
  EXPECT_TRUE(ArmedDraw(0, false).complete());
  ArmedDraw partner_alone(1, true);
  EXPECT_TRUE(partner_alone.complete());
  EXPECT_FALSE(partner_alone.take(random));
}

/// How often each of `candidates`, the partner left out, is armed, and how often the first two are armed together.
struct Shares {
  std::vector<double> each;
  double pair = 0;
};

Shares shares_of(std::uint32_t candidates, bool has_partner) {
  std::uint64_t random = 7;
  Shares shares;
  const std::uint32_t drawn = candidates - (has_partner ? 1 : 0);
  shares.each.resize(drawn);
  for (int i = 0; i < draws; ++i) {
    ArmedDraw draw(candidates, has_partner);
    std::vector<bool> taken(drawn);
    std::uint32_t count = has_partner ? 1 : 0;
    for (std::uint32_t c = 0; c < drawn; ++c) {
      taken[c] = draw.take(random);
      count += taken[c] ? 1 : 0;
      shares.each[c] += taken[c] ? 1.0 / draws : 0;
    }
    EXPECT_EQ(count, most_armed);
    shares.pair += taken[0] && taken[1] ? 1.0 / draws : 0;
  }
  return shares;
}

TEST(ArmedDraw, EveryThreadAndEveryPairIsAsLikelyAsAnother) {
  const Shares shares = shares_of(63, false);
  for (const double share : shares.each) {
    EXPECT_NEAR(share, 24.0 / 63, 0.015);
  }
  EXPECT_NEAR(shares.pair, 24.0 / 63 * 23 / 62, 0.015);
}

TEST(ArmedDraw, APartnerTakesOneOfThePlaces) {
  const Shares shares = shares_of(63, true);
  for (const double share : shares.each) {
    EXPECT_NEAR(share, 23.0 / 62, 0.015);
  }
}

}  // namespace
}  // namespace crosstalk::watch_policy::selection_test
