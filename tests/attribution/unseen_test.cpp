// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/unseen.h"

#include <gtest/gtest.h>

#include <random>

#include "attribution/estimate/amounts.h"
#include "attribution/estimate/estimator.h"
#include "attribution/estimate/intervals.h"
#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::unseen_test {
namespace {

constexpr std::uint64_t ms = 1'000'000;

TEST(MostUnseen, IsTheRuleOfThree) {
  EXPECT_NEAR(most_unseen_ns({{1000, 100}}), 1000 * most_unseen_events / 100, 1e-9);
  EXPECT_NEAR(most_unseen_ns({{1000, 10'000}}), 1000 * most_unseen_events / 10'000, 1e-9);
}

TEST(MostUnseen, IsNoMoreThanThereIs) {
  EXPECT_EQ(most_unseen_ns({{1000, 2}}), 1000);
  EXPECT_EQ(most_unseen_ns({{1000, 0}, {500, 0}}), 1500);
  EXPECT_EQ(most_unseen_ns({}), 0);
}

// Two watches fill the first with unseen events; remaining events go to the part that hides most for each.
TEST(MostUnseen, OfSeveralIsTheMostThatTheirSumCanBe) {
  const double left = most_unseen_events - 2;
  EXPECT_NEAR(most_unseen_ns({{800, 80}, {1000, 2}, {3000, 100}}), 1000 + 3000 * left / 100, 1e-9);
  EXPECT_NEAR(most_unseen_ns({{3000, 100}, {800, 80}, {1000, 2}}), 1000 + 3000 * left / 100, 1e-9);
}

/// Thread 0 has `samples` of 1 ms, on a line of its own each; all of them open watches, on `words`.
struct Recording {
  Recording(std::size_t samples, const std::vector<profile::WatchWord>& words, std::uint8_t flags = 0) {
    for (std::size_t i = 0; i < samples; ++i) {
      profile::WatchRow watch;
      watch.thread = ThreadId{0};
      watch.line = watch.sample_address = line + 0x1000 * i;
      watch.sample_cpu_ns = ms;
      watch.sample_flags = flags;
      watch.sample_access = AccessKind::load;
      watch.words.assign(words.begin(), words.end());
      watches.push_back(watch);
    }
    timelines.resize(samples);
  }
  Estimate estimate() {
    Strata strata(watches, threads);
    strata.finish();
    return attribution::estimate(estimators().front(), WatchEvidence(watches, timelines, strata), strata);
  }
  UnseenLimits limits() { return *estimate().expansion.unseen; }
  void sees(std::size_t watch, bool true_sharing) {
    SeenCommunication seen;
    seen.producer.thread = ThreadId{1};
    seen.consumer.thread = ThreadId{0};
    seen.true_sharing = true_sharing;
    timelines[watch].communications = {seen};
  }
  std::vector<profile::ThreadRow> threads = make_threads(2);
  std::vector<profile::WatchRow> watches;
  std::vector<OwnershipTimeline> timelines;
};

TEST(Unseen, IsLimitedByTheWordsThatWereDrawn) {
  const UnseenLimits limits = Recording(100, {word_at(0), word_at(8, 8, 0.25F)}).limits();
  EXPECT_NEAR(limits.anywhere.true_ns, most_unseen_events * ms, 1);
  EXPECT_NEAR(limits.anywhere.false_ns, 4 * most_unseen_events * ms, 1);
  ASSERT_EQ(limits.threads.size(), 1U);
  EXPECT_EQ(limits.of(1), nullptr);  // it has no samples
  EXPECT_NEAR(limits.of(0)->anywhere.true_ns, most_unseen_events * ms, 1);
  EXPECT_EQ(limits.of(0)->of_partner.true_ns, 0);
}

// On lines that are not suspected: if all threads were armed, their watches count for any partner; if some were not,
// most watches could not have seen a known partner.
TEST(Unseen, AKnownPartnerMayBeWhereItWasNotArmed) {
  Recording run(100, {word_at(0)});
  for (profile::WatchRow& watch : run.watches) {
    watch.threads = 73;
    watch.armed = 72;
  }
  EXPECT_EQ(run.limits().of(0)->of_partner.true_ns, 0);
  for (profile::WatchRow& watch : run.watches) {
    watch.armed = 24;
  }
  EXPECT_NEAR(run.limits().of(0)->of_partner.true_ns, 3 * most_unseen_events * ms, 1);
  EXPECT_NEAR(run.limits().of(0)->anywhere.true_ns, 3 * most_unseen_events * ms, 1);
}

// Strata of hardly watched samples hold several threads: one thread's watches exclude nothing for another's.
TEST(Unseen, OneThreadsWatchesSayNothingOfAnothers) {
  Recording run(1, {word_at(0)});
  run.threads = make_threads(50);
  run.watches.resize(50, run.watches[0]);
  run.timelines.resize(50);
  for (std::uint32_t i = 0; i < 50; ++i) {
    run.watches[i].thread = ThreadId{i};
  }
  const UnseenLimits limits = run.limits();
  EXPECT_NEAR(limits.anywhere.true_ns, most_unseen_events * ms, 1);
  for (std::uint32_t i = 0; i < 50; ++i) {
    EXPECT_EQ(limits.of(i)->anywhere.true_ns, ms);
  }
}

TEST(Unseen, WordsThatWereNeverWatchedExcludeNothing) {
  EXPECT_NEAR(Recording(100, {word_at(0)}).limits().anywhere.false_ns, 100 * ms, 1);
}

TEST(Unseen, FullWatchesThatSawNothingExcludeNothing) {
  Recording run(100, {word_at(0)});
  for (std::size_t i = 0; i < 50; ++i) {
    run.watches[i].close = profile::CloseReason::full;
  }
  EXPECT_NEAR(run.limits().anywhere.true_ns, 2 * most_unseen_events * ms, 1);
}

TEST(Unseen, SuspectedLinesAreToldApart) {
  Recording run(200, {word_at(0)});
  for (std::size_t i = 0; i < 50; ++i) {
    run.watches[i].sample_flags = profile::sample_suspected;
  }
  const UnseenLimits limits = run.limits();
  EXPECT_NEAR(limits.of(0)->of_partner.true_ns, most_unseen_events * ms, 1);
  EXPECT_NEAR(limits.of(0)->anywhere.true_ns, most_unseen_events * ms, 1);  // together: all watches speak
}

TEST(Unseen, ASortThatWasNotSeenHasALimitAndOneThatWasHasAnInterval) {
  Recording run(100, {word_at(0), word_at(8, 8, 0.5F)}, profile::sample_suspected);
  run.sees(0, true);
  run.sees(1, true);
  const Estimate made = run.estimate();
  const Matrix matrix = matrix_of(made.contributions, made.expansion, thread_pair);
  ASSERT_EQ(matrix.size(), 1U);
  EXPECT_EQ(*matrix[0].false_sharing.cost_s, 0);
  EXPECT_EQ(matrix[0].false_sharing.cost_ci95->low, 0);
  EXPECT_NEAR(matrix[0].false_sharing.cost_ci95->high, 2 * most_unseen_events / 1000, 1e-6);
  EXPECT_GT(matrix[0].true_sharing.cost_ci95->low, 0);
  EXPECT_LT(matrix[0].true_sharing.cost_ci95->high, 0.1);
}

TEST(Unseen, WhatWasSeenByWatchesThatStandForNoTimeIsNotKnownToTakeNone) {
  Recording run(100, {word_at(0)});
  run.sees(0, true);
  Estimate made = run.estimate();
  ASSERT_EQ(made.expansion.unseen->of(0)->of_partner.true_ns, 0) << "of a partner that no watch suspected";
  for (Contribution& contribution : made.contributions) {
    contribution.cost = 0;
  }
  const Matrix matrix = matrix_of(made.contributions, made.expansion, thread_pair);
  ASSERT_EQ(matrix.size(), 1U);
  EXPECT_EQ(*matrix[0].true_sharing.cost_s, 0);
  EXPECT_NEAR(matrix[0].true_sharing.cost_ci95->high, made.expansion.unseen->of(0)->anywhere.true_ns / 1e9, 1e-9);
  EXPECT_GT(matrix[0].true_sharing.cost_ci95->high, 0);
}

TEST(Unseen, TooFewWatchesTellNothing) { EXPECT_FALSE(Recording(1, {word_at(0)}).estimate().expansion.unseen); }

// `share` of a stratum is what each watch would see. The limit is above it in at least 97.5 % of the runs in which no
// watch saw it, and such runs are not rare if the limit is near.
TEST(Unseen, LimitsHold) {
  constexpr int watches = 40, runs = 4000;
  std::mt19937_64 random(7);
  for (const double share : {0.02, 0.05, 0.09, 0.15}) {
    std::binomial_distribution<int> seen(watches, share);
    int wrong = 0;
    for (int run = 0; run < runs; ++run) {
      wrong += seen(random) == 0 && most_unseen_ns({{1, watches}}) < share ? 1 : 0;
    }
    EXPECT_LE(wrong, 0.03 * runs) << share;
  }
}

}  // namespace
}  // namespace crosstalk::attribution::test::unseen_test
