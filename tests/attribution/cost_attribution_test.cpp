// SPDX-License-Identifier: Apache-2.0
// The contributions of one watch, by estimator.
#include "attribution/estimate/cost_attribution.h"

#include <gtest/gtest.h>

#include "attribution/estimate/amounts.h"
#include "attribution/estimate/estimator.h"
#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::cost_attribution_test {
namespace {

constexpr double ms = 1e6;

AccessPoint point(std::uint32_t thread, AccessKind kind, std::int64_t offset, double weight = 1,
                  std::uint64_t time_ns = 200) {
  AccessPoint result;
  result.thread = ThreadId{thread};
  result.kind = kind;
  result.bytes = LineBytes::range(offset, 8);
  result.probability = static_cast<float>(1 / weight);
  result.time_ns = time_ns;
  return result;
}

/// A watch of thread 0, sampled for 1 ms at the line's first word, with its seen accesses.
struct Watched {
  explicit Watched(std::vector<AccessPoint> seen, AccessKind sampled = AccessKind::load) : accesses(std::move(seen)) {
    row.thread = ThreadId{0};
    row.line = line;
    row.sample_address = line;
    row.sample_width = 8;
    row.sample_access = sampled;
    row.threads = 5;
    row.armed = 4;
  }
  Estimate charged(void (*charge)(const Evidence&, std::uint32_t, Estimate&)) const {
    Evidence evidence;
    evidence.thread = row.thread;
    evidence.weight = ms;
    evidence.stratum = 0;
    evidence.accesses = accesses;
    evidence.communications = communications;
    evidence.interrupted = interrupted;
    evidence.watch = &row;
    evidence.sampled = row.sample_access;
    evidence.brief_until_ns = brief_until_ns;
    evidence.long_weight = 32;
    Estimate estimate;
    charge(evidence, 3, estimate);
    return estimate;
  }
  profile::WatchRow row;
  std::vector<AccessPoint> accesses;
  std::vector<SeenCommunication> communications, interrupted;
  std::uint64_t brief_until_ns = UINT64_MAX;
};

struct CostShare {
  std::uint32_t producer, consumer;
  bool true_sharing;
  double ms;
  bool operator==(const CostShare&) const = default;
};
std::ostream& operator<<(std::ostream& out, const CostShare& c) {
  return out << c.producer << "->" << c.consumer << (c.true_sharing ? " true " : " false ") << c.ms << " ms";
}

std::vector<CostShare> charges(const Estimate& estimate) {
  std::vector<CostShare> result;
  for (const Contribution& c : estimate.contributions) {
    EXPECT_EQ(c.watch, 3U);
    EXPECT_EQ(c.watch_weight, ms);
    result.push_back({c.seen->producer.thread.value, c.seen->consumer.thread.value, c.seen->true_sharing, c.cost / ms});
  }
  return result;
}
using CostAttribution = std::vector<CostShare>;

TEST(Board, EachObserverCountsOnePeriod) {
  const Watched watched({point(2, AccessKind::load, 8, 8), point(1, AccessKind::load, 0),
                         point(2, AccessKind::store, 8, 8), point(0, AccessKind::store, 0)});
  EXPECT_EQ(charges(watched.charged(charge_board)), (CostAttribution{{0, 1, true, 1}, {0, 2, false, 1}}));
}

TEST(BoardWeighted, DividesByTheChancesOfWordAndThread) {
  Watched watched({point(2, AccessKind::load, 8, 8), point(1, AccessKind::load, 0)});
  watched.row.armed = 2;  // of four others
  EXPECT_EQ(charges(watched.charged(charge_board_weighted)), (CostAttribution{{0, 1, true, 2}, {0, 2, false, 16}}));
}

TEST(BoardWeighted, AWordThatWasCertainNeedsNoWeight) {
  const Watched watched({point(1, AccessKind::load, 8, 8), point(1, AccessKind::load, 0)});
  EXPECT_EQ(charges(watched.charged(charge_board_weighted)), (CostAttribution{{0, 1, true, 1}}));
}

TEST(BoardWeighted, DamagedThreadCountsStayFinite) {
  Watched watched({point(1, AccessKind::load, 0)});
  watched.row.threads = watched.row.armed = 0;
  EXPECT_EQ(charges(watched.charged(charge_board_weighted)), (CostAttribution{{0, 1, true, 1}}));
}

TEST(NextAccess, IsTheFirstOfAnotherThread) {
  const Watched watched({point(0, AccessKind::load, 0), point(2, AccessKind::load, 0), point(1, AccessKind::store, 0)},
                        AccessKind::store);
  EXPECT_EQ(charges(watched.charged(charge_next_access)), (CostAttribution{{0, 2, true, 1}}));
}

TEST(NextStore, LoadsDoNotCloseIt) {
  const Watched watched(
      {point(2, AccessKind::load, 0), point(0, AccessKind::store, 0), point(1, AccessKind::store, 0)});
  EXPECT_EQ(charges(watched.charged(charge_next_store)), (CostAttribution{{1, 0, true, 1}}));
}

TEST(NextStore, PrefersTheCertainWordOfTheSameRunAlone) {
  const Watched same(
      {point(1, AccessKind::store, 8, 8), point(1, AccessKind::store, 0), point(2, AccessKind::store, 0)});
  EXPECT_EQ(charges(same.charged(charge_next_store)), (CostAttribution{{1, 0, true, 1}}));
  const Watched other({point(1, AccessKind::store, 8, 8), point(2, AccessKind::store, 0)});
  EXPECT_EQ(charges(other.charged(charge_next_store)), (CostAttribution{{1, 0, false, 8}}));
}

TEST(NextStore, WhatOnlyALongWatchSeesCountsForTheBriefOnes) {
  Watched watched({point(1, AccessKind::store, 0, 1, 500)});
  watched.brief_until_ns = 500;
  EXPECT_EQ(charges(watched.charged(charge_next_store)), (CostAttribution{{1, 0, true, 1}}));
  watched.brief_until_ns = 499;
  EXPECT_EQ(charges(watched.charged(charge_next_store)), (CostAttribution{{1, 0, true, 32}}));
}

TEST(Partners, NobodyCame) {
  const Watched watched({point(0, AccessKind::load, 0), point(0, AccessKind::store, 0)}, AccessKind::load_store);
  for (const auto charge : {charge_board, charge_board_weighted, charge_next_access, charge_next_store}) {
    EXPECT_TRUE(charges(watched.charged(charge)).empty());
  }
}

SeenCommunication exchanged(std::uint32_t producer, std::uint32_t consumer) {
  return {point(producer, AccessKind::store, 0), point(consumer, AccessKind::load, 0), true, 1};
}

TEST(Communications, AStoreThatTakesTheLineFromItsReadersIsNone) {
  Watched watched({}, AccessKind::store);
  watched.communications = {exchanged(0, 1), exchanged(0, 2)};
  EXPECT_EQ(charges(watched.charged(charge_communications)), (CostAttribution{{0, 1, true, 0}, {0, 2, true, 0}}));
  watched.communications.push_back(exchanged(1, 2));  // another stores, too: the store may have waited for it
  EXPECT_GT(charges(watched.charged(charge_communications))[0].ms, 0.3);
  watched.communications.pop_back();
  watched.row.sample_access = AccessKind::load;  // a thread that hands on what it has taken over
  EXPECT_EQ(charges(watched.charged(charge_communications)), (CostAttribution{{0, 1, true, 0.5}, {0, 2, true, 0.5}}));
}

TEST(Communications, WhatWasInterruptedIsChargedToNobody) {
  Watched watched({});
  watched.interrupted = {exchanged(1, 0)};
  watched.communications = {exchanged(0, 1)};  // not the sampled thread's
  EXPECT_EQ(charges(watched.charged(charge_communications)), (CostAttribution{{0, 1, true, 0}}));
  watched.communications.push_back(exchanged(2, 0));
  EXPECT_EQ(charges(watched.charged(charge_communications)), (CostAttribution{{0, 1, true, 0}, {2, 0, true, 0.5}}));
}

TEST(Communications, SeveralPossibleProducersShareOne) {
  Watched watched({});
  SeenCommunication some = exchanged(1, 0);
  some.share = 0.25, some.weight = 7 * some.share;
  SeenCommunication more = exchanged(2, 0);
  more.share = 0.75, more.weight = 7 * more.share;
  watched.communications = {some, more};
  EXPECT_EQ(charges(watched.charged(charge_communications)), (CostAttribution{{1, 0, true, 1.75}, {2, 0, true, 5.25}}));
}

TEST(Communications, LateOnesCountOnce) {
  Watched watched({});
  watched.communications = {exchanged(1, 0)};
  watched.brief_until_ns = 100;
  EXPECT_EQ(charges(watched.charged(charge_communications)), (CostAttribution{{1, 0, true, 1}}));
}

TEST(WatchEvidence, LongWatchesAreOneInSoMany) {
  std::vector<profile::WatchRow> watches(9);
  for (profile::WatchRow& watch : watches) {
    watch.time_ns = 1000;
    watch.horizon_ns = 500;
  }
  watches[4].horizon_ns = watches[7].horizon_ns = watches[8].horizon_ns = 20'000;
  watches[8].suspected = true;  // always watched for long
  const std::vector<OwnershipTimeline> timelines(watches.size());
  const Strata strata(watches, make_threads(1));
  const WatchEvidence evidence(watches, timelines, strata);
  EXPECT_EQ(evidence.at(0).duration_weight(5000), 1);
  EXPECT_EQ(evidence.at(4).duration_weight(1500), 1);
  EXPECT_EQ(evidence.at(4).duration_weight(1501), 4);
  EXPECT_EQ(evidence.at(8).duration_weight(5000), 1);
}

TEST(Estimate, AFullWatchThatSawNothingHasNotDecidedOnAnExchangedLine) {
  constexpr int exchanging = 6, full = 4;
  std::vector<profile::WatchRow> watches(exchanging + full);
  std::vector<OwnershipTimeline> timelines(watches.size());
  for (std::size_t i = 0; i < watches.size(); ++i) {
    watches[i].line = watches[i].sample_address = line;
    watches[i].sample_cpu_ns = 1'000'000;
    watches[i].sample_access = AccessKind::load;
    watches[i].close = profile::CloseReason::full;
    if (i < exchanging) {
      timelines[i].communications = {exchanged(1, 0)};
    }
  }
  const auto cost_s = [&] {
    const auto threads = make_threads(2);
    Strata strata(watches, threads);
    strata.finish();
    const Estimate made = estimate(estimators().front(), WatchEvidence(watches, timelines, strata), strata);
    return *matrix_of(made.contributions, made.expansion, thread_pair).at(0).true_sharing.cost_s;
  };
  EXPECT_NEAR(cost_s(), 0.010, 1e-12);
  for (profile::WatchRow& watch : watches) {
    watch.close = profile::CloseReason::horizon;
  }
  EXPECT_NEAR(cost_s(), 0.006, 1e-12);
}

TEST(StrataPolicy, OtherAccessesNeitherCountNorAreWatched) {
  std::vector<profile::WatchRow> watches(4);
  for (std::size_t i = 0; i < watches.size(); ++i) {
    watches[i].sample_cpu_ns = 10;
    watches[i].sample_access = i < 3 ? AccessKind::load : AccessKind::store;
  }
  Strata strata(watches, make_threads(1), {StrataPolicy::Of::loads, false, true});
  profile::SampleRow sample;
  sample.cpu_ns = 10;
  sample.flags = profile::sample_eligible;
  for (const AccessKind kind : {AccessKind::load, AccessKind::load_store, AccessKind::store, AccessKind::none}) {
    sample.access = kind;
    strata.add(sample);
  }
  strata.finish();
  ASSERT_EQ(strata.all().size(), 1U);
  EXPECT_EQ(strata.all()[0].watched, 3U);
  EXPECT_EQ(strata.all()[0].eligible, 2U);
  EXPECT_EQ(strata.of_watch(3), Strata::none);
  EXPECT_EQ(strata.threads()[0].ns, 40);
}

// All of a thread's time is communication: its choice of samples adds no variance, so only that of the watches is left.
TEST(MatrixOf, ABusyThreadsTimeIsNoChance) {
  const auto width = [](double other_ns) {
    Expansion expansion;
    Stratum stratum;
    stratum.thread = 0;
    stratum.eligible = stratum.watched = 100;
    stratum.eligible_weight = stratum.watched_weight = 100 * ms;
    stratum.eligible_weight2 = stratum.watched_weight2 = 100 * ms * ms;
    expansion.strata = {stratum};
    expansion.threads = {{100 * ms + other_ns, 100 * ms * ms + other_ns * ms}};
    const SeenCommunication seen = exchanged(1, 0);
    std::vector<Contribution> contributions;
    for (std::uint32_t i = 0; i < 100; ++i) {
      contributions.push_back({&seen, i, 0, ms, ms});
    }
    const Interval interval = *matrix_of(contributions, expansion, thread_pair).at(0).true_sharing.cost_ci95;
    return interval.high - interval.low;
  };
  EXPECT_LT(width(0), 0.01);
  EXPECT_GT(width(900 * ms), 0.01);
}

}  // namespace
}  // namespace crosstalk::attribution::test::cost_attribution_test
