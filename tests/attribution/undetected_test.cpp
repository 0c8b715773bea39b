// SPDX-License-Identifier: Apache-2.0
// The limit of undetected cost by kind of evidence, and the time that it rests on.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "attribution/estimate/intervals.h"
#include "attribution/undetected_cost.h"
#include "rows.h"

namespace crosstalk::attribution::test::undetected_test {
namespace {

constexpr std::uint64_t ms = 1'000'000;

/// 4 s in company, of which 1 s was seen to be communication.
UndetectedFacts facts_of(EvidenceKind evidence) {
  UndetectedFacts facts;
  facts.evidence = evidence;
  facts.reachable_s = 4;
  facts.seen_s = 1;
  return facts;
}

bool lists(const Undetected& found, const std::string& code, bool within_limit = true) {
  return std::any_of(found.cannot_see.begin(), found.cannot_see.end(),
                     [&](const CannotSee& one) { return one.code == code && one.within_limit == within_limit; });
}

TEST(Undetected, OfWatchesIsWhatTheyLeaveOpenAndCouldNotReach) {
  UndetectedFacts facts = facts_of(EvidenceKind::watched);
  facts.unseen_s = 0.25;
  facts.out_of_reach_s = 0.5;
  const Undetected found = undetected(facts);
  EXPECT_DOUBLE_EQ(found.at_most_s.value(), 0.75);
  EXPECT_TRUE(lists(found, "unarmed_words"));
  EXPECT_TRUE(lists(found, "out_of_reach"));
  EXPECT_FALSE(lists(found, "silent_stores"));
  facts.unseen_s = 5;
  EXPECT_DOUBLE_EQ(undetected(facts).at_most_s.value(), 3) << "no more than the time beside what was seen";
  facts.unseen_s.reset();
  EXPECT_DOUBLE_EQ(undetected(facts).at_most_s.value(), 3) << "too few watches give no limit";
}

TEST(Undetected, OfWeakerEvidenceIsAllTimeBesideWhatWasSeen) {
  for (const EvidenceKind evidence :
       {EvidenceKind::watched_in_part, EvidenceKind::probed, EvidenceKind::sampled, EvidenceKind::none}) {
    UndetectedFacts facts = facts_of(evidence);
    facts.unseen_s = 0.1;
    facts.silent_kinds = "locked updates";
    const Undetected found = undetected(facts);
    EXPECT_DOUBLE_EQ(found.at_most_s.value(), 3) << evidence_name(evidence);
    EXPECT_FALSE(found.why.empty());
  }
}

TEST(Undetected, SaysWhatEachEvidenceCannotSee) {
  const Undetected probed = undetected(facts_of(EvidenceKind::probed));
  EXPECT_TRUE(lists(probed, "silent_stores"));
  EXPECT_TRUE(lists(probed, "values_that_return"));
  EXPECT_TRUE(lists(probed, "absent_partners"));
  EXPECT_FALSE(lists(probed, "out_of_reach")) << "every sample could be probed";
  EXPECT_TRUE(lists(undetected(facts_of(EvidenceKind::sampled)), "unsampled_lines"));
  EXPECT_TRUE(lists(undetected(facts_of(EvidenceKind::none)), "everything"));
  for (const char* beyond : {"kernel", "devices", "other_processes", "ended_threads"}) {
    EXPECT_TRUE(lists(probed, beyond, false)) << beyond;
  }
}

TEST(Undetected, IsNoneOnlyWhereNoTwoThreadsLivedAndHasNoLimitWithoutTimes) {
  UndetectedFacts facts = facts_of(EvidenceKind::sampled);
  facts.reachable_s = 0;
  EXPECT_EQ(undetected(facts).at_most_s, 0.0);
  EXPECT_FALSE(undetected(facts).met);
  facts.reachable_s = 0.5;
  facts.least_s = 0.1;
  EXPECT_EQ(undetected(facts).at_most_s, 0.1) << "1 s was seen, which is an estimate";
  facts.least_s = 2;
  EXPECT_EQ(undetected(facts).at_most_s, 0.5) << "no more than there is";
  facts.reachable_s.reset();
  EXPECT_FALSE(undetected(facts).at_most_s);
  EXPECT_EQ(undetected(facts).why, "the threads' CPU time is not known");
}

profile::SampleRow sample(std::uint32_t thread, std::uint64_t time_ns, unsigned flags) {
  profile::SampleRow row;
  row.thread = ThreadId{thread};
  row.time_ns = time_ns;
  row.cpu_ns = ms;
  row.flags = static_cast<std::uint8_t>(flags);
  return row;
}

/// Thread 0 lives from 0 on, thread 1 from 100 to 200 ms.
std::vector<profile::ThreadRow> two_threads(std::uint32_t process_of_second) {
  auto threads = make_threads(2);
  threads[1].process = ProcessId{process_of_second};
  threads[1].begin_ns = 100 * ms;
  threads[1].end_ns = 200 * ms;
  return threads;
}

void add(ReachableTime& time, int samples, const profile::SampleRow& row) {
  for (int i = 0; i < samples; ++i) {
    time.add(row);
  }
}

TEST(ReachableTime, IsInUserModeAndInCompany) {
  const auto threads = two_threads(0);
  ReachableTime time(threads, false);
  add(time, 1000, sample(0, 50 * ms, 0));
  add(time, 1000, sample(0, 250 * ms, 0));
  add(time, 1000, sample(0, 150 * ms, profile::sample_in_kernel));
  EXPECT_NEAR(time.reachable_s(), most_unseen_events / 1000, 1e-9) << "alone, or in the kernel";
  EXPECT_FALSE(time.met());
  add(time, 100, sample(0, 150 * ms, 0));
  EXPECT_TRUE(time.met());
  EXPECT_GT(time.reachable_s(), 0.1);
  EXPECT_LT(time.reachable_s(), 0.13);
  add(time, 7000, sample(1, 150 * ms, profile::sample_eligible));
  EXPECT_GT(time.reachable_s(), 7.1);
  EXPECT_LT(time.reachable_s(), 7.22) << "the time beyond reach is known no worse";
  const double before_s = time.reachable_s();
  add(time, 1000, sample(7, 150 * ms, 0));
  EXPECT_DOUBLE_EQ(time.reachable_s(), before_s) << "a thread that the profile does not have";
}

TEST(ReachableTime, OfFewSamplesIsAllOfIt) {
  const auto threads = two_threads(0);
  ReachableTime time(threads, false);
  EXPECT_EQ(time.reachable_s(), 0) << "time without samples is added";
  add(time, 3, sample(0, 150 * ms, profile::sample_in_kernel));
  EXPECT_DOUBLE_EQ(time.reachable_s(), 0.003);
  EXPECT_DOUBLE_EQ(time.out_of_reach_s(), 0.003);
}

TEST(ReachableTime, ThreadsThatNeverMetHaveNone) {
  auto threads = make_threads(2);
  threads[0].end_ns = 100 * ms;
  threads[1].begin_ns = 100 * ms;
  ReachableTime time(threads, true);
  add(time, 3, sample(0, 50 * ms, 0));
  EXPECT_FALSE(time.any_company());
  EXPECT_EQ(time.reachable_s(), 0);
  EXPECT_EQ(time.out_of_reach_s(), 0);
}

TEST(ReachableTime, ProcessesMayShareMemoryThatNoSampleMet) {
  const auto threads = two_threads(1);
  profile::SampleRow elsewhere = sample(0, 150 * ms, 0);
  elsewhere.access = AccessKind::load;
  ReachableTime common(threads, true);
  add(common, 1000, elsewhere);
  EXPECT_DOUBLE_EQ(common.reachable_s(), 1);
  ReachableTime time(threads, false);
  add(time, 1000, elsewhere);
  EXPECT_TRUE(time.any_company());
  EXPECT_FALSE(time.met());
  EXPECT_NEAR(time.reachable_s(), 2 * most_unseen_events / 1000, 1e-9) << "in its own process, and with the other one";
  ReachableTime unknown(threads, false);
  add(unknown, 1000, sample(0, 150 * ms, 0));
  EXPECT_DOUBLE_EQ(unknown.reachable_s(), 1) << "no address tells";
}

TEST(ReachableTime, OutOfReachHasAnUpperLimit) {
  const auto threads = make_threads(2);
  ReachableTime time(threads, false);
  for (int i = 0; i < 1000; ++i) {
    time.add(sample(0, 150 * ms, profile::sample_eligible));
  }
  EXPECT_NEAR(time.out_of_reach_s(), most_unseen_events / 1000, 1e-6) << "none of 1000 samples";
  for (int i = 0; i < 100; ++i) {
    time.add(sample(0, 150 * ms, 0));
  }
  EXPECT_GT(time.out_of_reach_s(), 0.1);
  EXPECT_LT(time.out_of_reach_s(), 0.13);
}

Analysis of_two_threads() {
  Analysis a;
  a.threads.resize(2);
  for (ThreadSummary& thread : a.threads) {
    thread.cpu_s = 1;
  }
  a.cpu_s = 2;
  a.sampling.with_address = 100;
  return a;
}

TEST(UndetectedCost, FollowsTheEvidenceOfTheRecording) {
  const auto threads = make_threads(2);
  ReachableTime time(threads, false);
  time.add(sample(0, 150 * ms, 0));
  Analysis a = of_two_threads();
  a.communication.true_sharing.cost_s = 0.9;
  a.communication.true_sharing.cost_ci95 = Interval{0.25, 2};
  EXPECT_DOUBLE_EQ(undetected_cost(a, time, 1).at_most_s.value(), 0.751) << "beside what was surely seen";
  a.communication.true_sharing = {};
  EXPECT_EQ(undetected_cost(a, time, 1).evidence, EvidenceKind::sampled);
  EXPECT_DOUBLE_EQ(undetected_cost(a, time, 1).at_most_s.value(), 1.001) << "with time that no sample stands for";
  a.sampling.with_address = 0;
  EXPECT_EQ(undetected_cost(a, time, 0).evidence, EvidenceKind::none);
  a.sampling.armed = 10;
  EXPECT_EQ(undetected_cost(a, time, 0).evidence, EvidenceKind::watched);
  a.session.config.method = profile::Method::probe;
  EXPECT_EQ(undetected_cost(a, time, 0).evidence, EvidenceKind::probed);
  a.session.config.method = profile::Method::watch;
  a.sight.sees = WatchSight::Sees::part;
  EXPECT_EQ(undetected_cost(a, time, 0).evidence, EvidenceKind::watched_in_part);
  a.sight.sees = WatchSight::Sees::nothing;
  EXPECT_EQ(undetected_cost(a, time, 0).evidence, EvidenceKind::none) << "found late to be blind";
  a.shares_of = "cache-misses";
  EXPECT_FALSE(undetected_cost(a, time, 0).at_most_s);
}

TEST(UndetectedCost, IsSaidInASentence) {
  Analysis a = of_two_threads();
  EXPECT_EQ(undetected_in_words(a), "");
  UndetectedFacts facts = facts_of(EvidenceKind::watched);
  facts.unseen_s = 0.5;
  facts.reachable_s = 2;
  a.communication.undetected = undetected(facts);
  EXPECT_EQ(undetected_in_words(a),
            "Undetected communication costs at most 500 ms (25 % of the CPU time), with 97.5 % confidence. The limit "
            "covers words that no watch was set on. No figure covers communication with the kernel, devices, processes "
            "that were not recorded and threads that had ended.");
  facts.reachable_s = 0;
  a.communication.undetected = undetected(facts);
  EXPECT_EQ(undetected_in_words(a), "No two recorded threads lived at the same time, so they could not communicate.");
  facts.reachable_s = 2;
  facts.met = false;
  a.communication.undetected = undetected(facts);
  EXPECT_NE(
      undetected_in_words(a).find(" at most 1 s (50 % of the CPU time), with 97.5 % confidence. The limit covers "),
      std::string::npos)
      << undetected_in_words(a);
  facts.reachable_s.reset();
  a.communication.undetected = undetected(facts);
  EXPECT_EQ(undetected_in_words(a),
            "The cost of undetected communication is unknown: the threads' CPU time is not known.");
}

}  // namespace
}  // namespace crosstalk::attribution::test::undetected_test
