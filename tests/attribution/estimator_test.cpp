// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/estimator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "attribution/estimate/amounts.h"
#include "attribution/estimate/intervals.h"
#include "attribution/samples/strata.h"
#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::estimator_test {
namespace {

constexpr std::uint64_t ms = 1'000'000;

profile::SampleRow eligible(std::uint32_t thread, std::uint64_t address, std::uint64_t cpu_ns = ms,
                            std::uint8_t flags = 0) {
  profile::SampleRow row;
  row.thread = ThreadId{thread};
  row.address = address;
  row.cpu_ns = cpu_ns;
  row.flags = static_cast<std::uint8_t>(flags | profile::sample_eligible);
  return row;
}

profile::WatchRow watch_of(const profile::SampleRow& sample) {
  profile::WatchRow row;
  row.thread = sample.thread;
  row.sample_address = sample.address;
  row.line = sample.address & ~63ULL;
  row.sample_cpu_ns = sample.cpu_ns;
  row.sample_measurement = sample.measurement;
  row.sample_flags = sample.flags;
  return row;
}

SeenCommunication seen(std::uint32_t producer, std::uint32_t consumer, bool true_sharing = true, double weight = 1) {
  SeenCommunication s;
  s.producer.thread = ThreadId{producer};
  s.consumer.thread = ThreadId{consumer};
  s.producer.cpu = static_cast<std::uint16_t>(producer);
  s.consumer.cpu = static_cast<std::uint16_t>(consumer);
  s.true_sharing = true_sharing;
  s.weight = weight;
  return s;
}

/// A run as the estimator sees it: samples, of which some opened watches that saw something.
struct Recording {
  explicit Recording(std::uint32_t count) : threads(make_threads(count)) {}
  void sample(const profile::SampleRow& row) { samples.push_back(row); }
  void watch(const profile::SampleRow& row, std::vector<SeenCommunication> communications) {
    samples.push_back(row);
    watches.push_back(watch_of(row));
    timelines.push_back(std::move(communications));
  }
  Matrix estimate(PairOf pair = thread_pair) {
    Strata strata(watches, threads);
    for (const auto& row : samples) {
      strata.add(row);
    }
    strata.finish();
    told.assign(timelines.size(), {});
    for (std::size_t i = 0; i < timelines.size(); ++i) {
      told[i].communications = timelines[i];
      told[i].accesses = i < accesses.size() ? accesses[i] : std::vector<AccessPoint>{};
    }
    result =
        attribution::estimate(*find_estimator("post_stratified").value(), WatchEvidence(watches, told, strata), strata);
    total_s = 0;
    for (const Contribution& contribution : result.contributions) {
      total_s += cost_s(contribution, result.expansion.strata);
    }
    unwatched_ns = strata.unwatched_ns();
    return matrix_of(result.contributions, result.expansion, pair);
  }
  std::vector<profile::ThreadRow> threads;
  std::vector<profile::SampleRow> samples;
  std::vector<profile::WatchRow> watches;
  std::vector<std::vector<SeenCommunication>> timelines;
  std::vector<std::vector<AccessPoint>> accesses;  // by watch, as far as they matter
  std::vector<OwnershipTimeline> told;
  Estimate result;
  double total_s = 0, unwatched_ns = 0;
};

TEST(Estimator, NamesAreChecked) {
  EXPECT_TRUE(find_estimator("automatic"));
  EXPECT_TRUE(find_estimator("post_stratified"));
  const auto unknown = find_estimator("guess");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(unknown.error().message.find("automatic"), std::string::npos);
}

TEST(Estimator, WatchedTimeStandsForEligibleTime) {
  Recording run(2);
  for (int i = 0; i < 6; ++i) {
    run.sample(eligible(0, line));
  }
  run.watch(eligible(0, line), {seen(1, 0)});
  run.watch(eligible(0, line), {});
  const Matrix matrix = run.estimate();
  ASSERT_EQ(matrix.size(), 1U);
  EXPECT_NEAR(*matrix[0].true_sharing.cost_s, 0.004, 1e-12);  // half of 8 ms
  EXPECT_NEAR(*matrix[0].false_sharing.cost_s, 0, 1e-12);
  EXPECT_EQ(matrix[0].true_sharing.seen, 1U);
  EXPECT_FALSE(matrix[0].true_sharing.count);
  EXPECT_GE(matrix[0].true_sharing.cost_ci95->low, 0);
  EXPECT_GT(matrix[0].true_sharing.cost_ci95->high, 0.004);
  EXPECT_LE(matrix[0].true_sharing.cost_ci95->high, 0.008);
}

/// The same sample as a hardware source has it: it stands for `weight` of `unit`, and for no time.
profile::SampleRow measured(profile::SampleRow row, profile::WeightUnit unit, std::uint64_t weight) {
  row.cpu_ns = 0;
  row.measurement = {profile::SourceKind::pebs, unit, 0, weight, 0};
  return row;
}

AccessPoint point(std::uint32_t thread, AccessKind kind, std::uint64_t time_ns) {
  AccessPoint made;
  made.thread = ThreadId{thread};
  made.kind = kind;
  made.time_ns = time_ns;
  made.bytes = LineBytes::range(0, 8);
  return made;
}

/// Another thread stores, then the sampled one comes back.
const std::vector<AccessPoint> handed_over = {point(1, AccessKind::store, 10), point(0, AccessKind::load, 20)};

SeenCommunication seen_at(const AccessPoint& producer, const AccessPoint& consumer) {
  SeenCommunication s = seen(producer.thread.value, consumer.thread.value);
  s.producer = producer;
  s.consumer = consumer;
  return s;
}

/// Eight samples of `weight` each, four of them watched, two with a communication 1 -> 0.
void add_half_communicating(Recording& recording, profile::SampleRow row) {
  for (int i = 0; i < 4; ++i) {
    recording.sample(row);
    recording.watch(
        row, i % 2 == 0 ? std::vector{seen_at(handed_over[0], handed_over[1])} : std::vector<SeenCommunication>{});
    recording.accesses.push_back(i % 2 == 0 ? handed_over : std::vector<AccessPoint>{});
  }
}

TEST(Units, AccessesGiveCountsAndNoCost) {
  for (const profile::WeightUnit unit : {profile::WeightUnit::accesses, profile::WeightUnit::micro_ops}) {
    Recording recording(2);
    add_half_communicating(recording, measured(eligible(0, 0x1000, 0), unit, 1000));
    const Matrix matrix = recording.estimate();
    ASSERT_EQ(matrix.size(), 1U);
    const Amount& amount = matrix[0].true_sharing;
    ASSERT_TRUE(amount.count);
    EXPECT_DOUBLE_EQ(*amount.count, 4000);
    ASSERT_TRUE(amount.count_ci95);
    EXPECT_LT(amount.count_ci95->low, 4000);
    EXPECT_GT(amount.count_ci95->high, 4000);
    EXPECT_LE(amount.count_ci95->high, 8000);  // more accesses there were not
    EXPECT_FALSE(amount.cost_s);
    EXPECT_EQ(amount.count_unknown, "");
    EXPECT_FALSE(matrix[0].false_sharing.count);
    EXPECT_EQ(recording.total_s, 0);
  }
}

/// The count of 1 -> 0, true sharing, of two samples of 1000 accesses that saw the same.
std::optional<double> count_of(const std::vector<AccessPoint>& accesses,
                               const std::vector<SeenCommunication>& communications, Recording* kept = nullptr) {
  Recording recording(2);
  for (int i = 0; i < 2; ++i) {
    auto row = measured(eligible(0, 0x1000, 0), profile::WeightUnit::accesses, 1000);
    row.width = 8;
    recording.watch(row, communications);
    recording.watches.back().sample_width = 8;
    recording.accesses.push_back(accesses);
  }
  const Matrix matrix = recording.estimate();
  if (kept != nullptr) {
    *kept = std::move(recording);
  }
  return matrix.empty() ? std::nullopt : matrix[0].true_sharing.count;
}

TEST(Counts, AnAccessIsWorthWhatFollowsIt) {
  const AccessPoint& store = handed_over[0];
  const AccessPoint& back = handed_over[1];
  EXPECT_EQ(count_of(handed_over, {seen_at(store, back)}), 2000);
  // The thread has come back before: the access after this one found the line unchanged.
  EXPECT_EQ(count_of({point(0, AccessKind::load, 5), store, back}, {seen_at(store, back)}), 0);
  // Only the first return follows the sampled access; later ones follow others.
  const AccessPoint again = point(1, AccessKind::store, 30);
  const AccessPoint once_more = point(0, AccessKind::load, 40);
  EXPECT_EQ(count_of({store, back, again, once_more}, {seen_at(store, back), seen_at(again, once_more)}), 2000);
  // Accesses of other consumers are counted by their own samples.
  const AccessPoint reader = point(1, AccessKind::load, 5);
  EXPECT_EQ(count_of({reader}, {seen_at(point(0, AccessKind::store, 1), reader)}), 0);
}

// Once another thread has stored, the next access is a communication, even after the end of the watch.
TEST(Counts, TheReturnIsExpected) {
  Recording kept(2);
  EXPECT_EQ(count_of({handed_over[0]}, {}, &kept), 2000);
  ASSERT_EQ(kept.result.contributions.size(), 2U);
  EXPECT_TRUE(kept.result.contributions[0].seen->expected());
  EXPECT_FALSE(count_of({point(1, AccessKind::load, 5)}, {}));
}

TEST(Counts, AreUnknownWhereFastLoadsAreLeftOut) {
  const profile::EventRow all{
      profile::EventId{1}, "loads", profile::SourceKind::pebs, profile::WeightUnit::accesses, 0, 3, true};
  profile::EventRow slow = all;
  slow.least_latency_cycles = 30;
  profile::EventRow other = slow;
  other.unit = profile::WeightUnit::occurrences;
  EXPECT_EQ(why_no_counts(std::vector{all, other}), "");
  const std::string why = why_no_counts(std::vector{all, slow});
  EXPECT_NE(why.find("30 cycles"), std::string::npos) << why;
  Recording recording(2);
  add_half_communicating(recording, measured(eligible(0, 0x1000, 0), profile::WeightUnit::accesses, 1000));
  (void)recording.estimate();
  recording.result.expansion.count_unknown = why;
  const Matrix matrix = matrix_of(recording.result.contributions, recording.result.expansion, thread_pair);
  EXPECT_FALSE(matrix.at(0).true_sharing.count);
  EXPECT_EQ(matrix.at(0).true_sharing.count_unknown, why);
}

TEST(Counts, AreUnknownWhereTheProcessorThrowsSamplesAway) {
  profile::EventRow misses;
  misses.source = profile::SourceKind::ibs;
  misses.unit = profile::WeightUnit::occurrences;
  EXPECT_NE(why_no_counts(std::vector{misses}).find("threads of one L3"), std::string::npos);
  misses.least_latency_cycles = 256;
  EXPECT_NE(why_no_counts(std::vector{misses}).find("256 cycles"), std::string::npos);
  Recording recording(2);
  add_half_communicating(recording, eligible(0, 0x1000, 1'000'000));
  (void)recording.estimate();
  const std::string why = recording.result.expansion.count_unknown = why_no_counts(std::vector{misses});
  const Matrix matrix = matrix_of(recording.result.contributions, recording.result.expansion, thread_pair);
  EXPECT_FALSE(matrix.at(0).true_sharing.count);
  EXPECT_EQ(matrix.at(0).true_sharing.count_unknown, why) << "of what the clock's samples tell";
}

// Costs ignore hardware samples, and counts ignore the clock's.
TEST(Units, AreNeverMixed) {
  for (const std::uint64_t weight : {1ULL, 1000ULL, 1'000'000'000'000ULL}) {
    Recording clock(2);
    Recording hardware(2);
    Recording both(2);
    for (Recording* recording : {&clock, &both}) {
      add_half_communicating(*recording, eligible(0, 0x1000));
    }
    for (Recording* recording : {&hardware, &both}) {
      add_half_communicating(*recording, measured(eligible(0, 0x1000, 0), profile::WeightUnit::accesses, weight));
      add_half_communicating(*recording, measured(eligible(0, 0x1000, 0), profile::WeightUnit::accesses, 3 * weight));
    }
    const Amount of_clock = clock.estimate().at(0).true_sharing;
    const Amount of_hardware = hardware.estimate().at(0).true_sharing;
    const Amount of_both = both.estimate().at(0).true_sharing;
    ASSERT_TRUE(of_both.cost_s && of_both.count);
    EXPECT_DOUBLE_EQ(*of_both.cost_s, *of_clock.cost_s);
    EXPECT_DOUBLE_EQ(of_both.cost_ci95->low, of_clock.cost_ci95->low);
    EXPECT_DOUBLE_EQ(of_both.cost_ci95->high, of_clock.cost_ci95->high);
    EXPECT_DOUBLE_EQ(*of_both.count, *of_hardware.count);
    EXPECT_DOUBLE_EQ(of_both.count_ci95->low, of_hardware.count_ci95->low);
    EXPECT_DOUBLE_EQ(of_both.count_ci95->high, of_hardware.count_ci95->high);
    EXPECT_DOUBLE_EQ(*of_hardware.count, 16.0 * static_cast<double>(weight));
    for (const Stratum& stratum : both.result.expansion.strata) {
      EXPECT_TRUE(stratum.eligible == 0 || stratum.eligible == 8 || stratum.eligible == 16);
    }
  }
}

// Weights may have any scale: amounts and intervals go with it.
TEST(Units, CountsGoWithTheScale) {
  Recording small(2);
  Recording large(2);
  add_half_communicating(small, measured(eligible(0, 0x1000, 0), profile::WeightUnit::micro_ops, 10));
  add_half_communicating(large, measured(eligible(0, 0x1000, 0), profile::WeightUnit::micro_ops, 10'000));
  const Amount a = small.estimate().at(0).true_sharing;
  const Amount b = large.estimate().at(0).true_sharing;
  EXPECT_NEAR(*b.count, 1000 * *a.count, 1e-6 * *b.count);
  EXPECT_NEAR(b.count_ci95->low, 1000 * a.count_ci95->low, 1e-6 * *b.count);
  EXPECT_NEAR(b.count_ci95->high, 1000 * a.count_ci95->high, 1e-6 * *b.count);
}

TEST(Armed, TheChanceThatOneOfSeveralIsAmongThoseDrawn) {
  const Arming arming{63, 24};
  EXPECT_NEAR(arming.chance(1), 24.0 / 63, 1e-12);
  EXPECT_NEAR(arming.chance(2), 1 - 39.0 / 63 * 38 / 62, 1e-12);
  EXPECT_NEAR(arming.chance(40), 1, 1e-12);
  EXPECT_EQ(arming.chance(0), 0);
  EXPECT_EQ((Arming{63, 0}.chance(1)), 0);
  EXPECT_EQ((Arming{63, 63}.chance(1)), 1);
}

TEST(Armed, WatchesThatHadThePartnerStandForTheOthers) {
  Recording recording(64);
  for (int i = 0; i < 20; ++i) {
    const profile::SampleRow row = eligible(0, 0x1000);
    recording.watch(row, i % 4 == 0 ? std::vector{seen(1, 0)} : std::vector<SeenCommunication>{});
    recording.watches.back().threads = 73;
    recording.watches.back().armed = 24;
  }
  EXPECT_NEAR(recording.estimate().at(0).true_sharing.cost_s.value(), 0.005 * 72 / 24, 1e-9);
  for (profile::WatchRow& watch : recording.watches) {
    watch.suspected = true;  // the board has named the partner, which was armed first
  }
  EXPECT_NEAR(recording.estimate().at(0).true_sharing.cost_s.value(), 0.005, 1e-9);
}

// The thread that stored in between is not seen.
TEST(Armed, WatchesThatMissThreadsAreNoEvidence) {
  Recording recording(64);
  for (int i = 0; i < 20; ++i) {
    recording.watch(eligible(0, 0x1000), {});
    recording.watches.back().threads = 9;
    recording.watches.back().armed = i < 10 ? 8 : 7;
  }
  Strata strata(recording.watches, recording.threads);
  strata.finish();
  EXPECT_NE(Strata::none, strata.of_watch(0));
  EXPECT_EQ(Strata::none, strata.of_watch(19));
  for (profile::WatchRow& watch : recording.watches) {
    watch.armed = 1;
  }
  EXPECT_FALSE(ArmingFailures(recording.watches).misses_threads(recording.watches[0])) << "nothing else is known";
}

// An event that stands for three of a thread's two watches is not cut to two: hardly watched threads form one stratum.
TEST(Armed, AnEventIsNotCutToTheFewWatchesOfItsThread) {
  Recording recording(64);
  for (std::uint32_t i = 0; i < 60; ++i) {
    recording.watch(eligible(i % 30, 0x1000), i == 0 ? std::vector{seen(40, 0)} : std::vector<SeenCommunication>{});
    recording.watches.back().threads = 73;
    recording.watches.back().armed = 24;
  }
  EXPECT_NEAR(recording.estimate().at(0).true_sharing.cost_s.value(), 0.003, 1e-9);
}

TEST(Estimator, IneligibleSamplesDoNotCount) {
  Recording run(2);
  auto kernel = eligible(0, 0);
  kernel.flags = profile::sample_in_kernel;
  for (int i = 0; i < 100; ++i) {
    run.sample(kernel);
  }
  run.watch(eligible(0, line), {seen(1, 0)});
  run.watch(eligible(0, line), {seen(1, 0)});
  EXPECT_NEAR(*run.estimate()[0].true_sharing.cost_s, 0.002, 1e-12);
}

TEST(Estimator, SuspectedSamplesAreAStratumOfTheirOwn) {
  Recording run(2);
  for (int i = 0; i < 98; ++i) {
    run.sample(eligible(0, 0x90000));
  }
  run.watch(eligible(0, 0x90000), {});
  run.watch(eligible(0, 0x90000), {});
  for (int i = 0; i < 10; ++i) {
    run.watch(eligible(0, line, ms, profile::sample_suspected), {seen(1, 0)});
  }
  EXPECT_NEAR(*run.estimate()[0].true_sharing.cost_s, 0.010, 1e-12);
}

TEST(Estimator, OftenWatchedPagesStandForThemselves) {
  Recording run(2);
  for (std::uint64_t i = 0; i < Strata::unit_watches; ++i) {
    run.watch(eligible(0, line), {seen(1, 0)});
    run.watch(eligible(0, 0x90000 + 0x1000 * i), {});
  }
  for (int i = 0; i < 80; ++i) {
    run.sample(eligible(0, 0x900000));  // elsewhere
  }
  EXPECT_NEAR(*run.estimate()[0].true_sharing.cost_s, 0.008, 1e-12);
}

// As for threads that live for a millisecond: each has one sample, and exchanged lines are watched more often than
// others.
TEST(Estimator, ALineThatManyThreadsWatchOnceEachStandsForItself) {
  constexpr std::uint32_t threads = 3 * Strata::common_unit_watches;
  Recording run(threads);
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    const bool watched = thread % 3 == 0;
    const auto shared = eligible(thread, line, ms, profile::sample_suspected);
    if (watched) {
      run.watch(shared, {seen((thread + 1) % threads, thread)});
    } else {
      run.sample(shared);
    }
    for (std::uint64_t i = 0; i < 2; ++i) {  // lines that only a later thread reuses
      run.sample(eligible(thread, 0x90000 + 0x1000 * i, ms, profile::sample_suspected));
    }
  }
  for (std::uint64_t i = 0; i < 2; ++i) {
    run.watch(eligible(0, 0x90000 + 0x1000 * i, ms, profile::sample_suspected), {});
  }
  run.estimate();
  EXPECT_NEAR(run.total_s, threads * 1e-3, 1e-12);
}

TEST(Estimator, ALineThatSeveralThreadsHardlyWatchDoesNot) {
  Recording run(4);
  for (std::uint32_t i = 0; i + 1 < Strata::common_unit_watches; ++i) {
    run.watch(eligible(i % 4, line),
              i % 2 == 0 ? std::vector{seen((i + 1) % 4, i % 4)} : std::vector<SeenCommunication>());
    run.watch(eligible(i % 4, 0x90000 + 0x1000 * i), {});
  }
  run.estimate();
  for (const Stratum& stratum : run.result.expansion.strata) {
    EXPECT_FALSE(stratum.one_line);
  }
}

TEST(Estimator, ALineStandsForItselfUnderAnySuspicion) {
  Recording run(2);
  for (std::uint64_t i = 0; i < Strata::unit_watches; ++i) {
    run.watch(eligible(0, line, ms, profile::sample_suspected), {seen(1, 0)});
    run.sample(eligible(0, line));  // the same line, before it was suspected
  }
  run.sample(eligible(0, 0x900000));  // never watched
  EXPECT_NEAR(*run.estimate()[0].true_sharing.cost_s, 0.016, 1e-12);
  EXPECT_NEAR(run.unwatched_ns, 1e6, 1e-6);
}

// The first watches fall on lines that are suspected later. They must not stand for private data.
TEST(Estimator, SuspicionIsJudgedInHindsight) {
  Recording run(2);
  const auto shared = [](std::uint64_t i) { return 0x100000 + 0x1000 * i; };
  for (std::uint64_t i = 0; i < 5; ++i) {
    run.watch(eligible(0, shared(i)), {seen(1, 0)});
    run.watch(eligible(0, 0x900000 + 0x1000 * i), {});
    run.watch(eligible(0, shared(i), ms, profile::sample_suspected), {seen(1, 0)});
  }
  for (std::uint64_t i = 0; i < 90; ++i) {
    run.sample(eligible(0, 0xa00000 + 0x1000 * i));
  }
  EXPECT_NEAR(*run.estimate()[0].true_sharing.cost_s, 0.010, 1e-12);
}

/// Watches of 1 ms samples of thread 0, each on a page of its own: `count` that look for `horizon_ns` and see
/// `producer` store `after_ns` after they began, 0: never.
void look(Recording& run, int count, bool suspected, std::uint64_t horizon_ns, std::uint64_t after_ns,
          std::uint32_t producer = 1) {
  for (int i = 0; i < count; ++i) {
    const std::uint64_t address = 0x100000 + 0x1000 * run.samples.size();
    std::vector<SeenCommunication> timeline;
    if (after_ns > 0) {
      timeline.push_back(seen(producer, 0));
      timeline.back().consumer.time_ns = after_ns;
    }
    run.watch(eligible(0, address, ms, suspected ? profile::sample_suspected : 0), std::move(timeline));
    run.watches.back().horizon_ns = horizon_ns;
    run.watches.back().suspected = suspected;
  }
}

constexpr std::uint64_t briefly = 500, for_long = 20'000, early = 100, late = 5000;

// 10 of 12 watches were long, and one of these saw late communication: 1.2 would have.
TEST(Censoring, LongWatchesSpeakForFewBriefOnes) {
  Recording run(2);
  look(run, 1, false, briefly, 0);
  look(run, 1, false, briefly, early);
  look(run, 9, false, for_long, 0);
  look(run, 1, false, for_long, late);
  EXPECT_NEAR(*run.estimate()[0].true_sharing.cost_s, 0.001 + 0.0012, 1e-12);
}

// 10 of 14 long watches that saw something saw it late, so 2 for each early one; on unknown lines, the one long watch
// in 40 has seen its part. It would count 40 times.
TEST(Censoring, WhatComesEarlyStandsForWhatComesLate) {
  Recording run(2);
  look(run, 4, true, for_long, early);
  look(run, 9, true, for_long, late);
  look(run, 29, false, briefly, 0);
  look(run, 10, false, briefly, early);
  look(run, 1, false, for_long, late);
  EXPECT_NEAR(*run.estimate()[0].true_sharing.cost_s, 0.013 + 0.010 * (1 + 2 * 0.975) + 0.001, 1e-12);
}

TEST(Censoring, WithoutLongWatchesNothingIsMadeUp) {
  Recording run(2);
  look(run, 9, false, briefly, 0);
  look(run, 1, false, briefly, early);
  EXPECT_NEAR(*run.estimate()[0].true_sharing.cost_s, 0.001, 1e-12);
}

// A brief watch lasts a little longer than its horizon; once the line is taken, it waits for the next event.
TEST(Censoring, ABriefWatchSeesWhatComesOfATakenLine) {
  const auto until_ns = [](const std::vector<std::pair<std::uint32_t, std::uint64_t>>& accesses) {
    Recording run(2);
    look(run, 1, false, briefly, 0);
    look(run, 1, true, for_long, 0);
    run.watches[0].close = profile::CloseReason::horizon;
    run.watches[0].close_ns = briefly + 100;
    run.told.resize(2);
    for (const auto& [thread, time_ns] : accesses) {
      run.told[1].accesses.emplace_back();
      run.told[1].accesses.back().thread = ThreadId{thread};
      run.told[1].accesses.back().time_ns = time_ns;
    }
    Strata strata(run.watches, run.threads);
    strata.finish();
    return WatchEvidence(run.watches, run.told, strata).at(1).brief_until_ns;
  };
  const std::uint64_t taken = briefly + 50;
  EXPECT_EQ(until_ns({}), briefly + 100);
  EXPECT_EQ(until_ns({{1, briefly + 101}}), briefly + 100);
  EXPECT_EQ(until_ns({{0, early}, {0, late}}), briefly + 100);  // its own thread does not take it
  EXPECT_EQ(until_ns({{1, taken}}), taken + profile::verdict_ns);
  EXPECT_EQ(until_ns({{1, taken}, {0, profile::verdict_ns}, {1, 2 * profile::verdict_ns}}), 2 * profile::verdict_ns);
}

// Some threads' brief watches end by a clock, others' with the next sample: each thread has its own duration.
TEST(Censoring, EachThreadsBriefWatchesLastAsLongAsItsOwn) {
  constexpr std::size_t quick = 20;
  constexpr std::size_t slow = 16;
  Recording run(2);
  look(run, quick + slow, false, briefly, 0);
  look(run, 2, true, for_long, 0);
  for (std::size_t i = 0; i < quick + slow; ++i) {
    run.watches[i].close = profile::CloseReason::horizon;
    run.watches[i].close_ns = i < quick ? briefly + 100 : 8 * briefly;
    run.watches[i].thread = ThreadId{i < quick ? 0U : 1U};
  }
  run.watches.back().thread = ThreadId{1};
  run.told.resize(run.watches.size());
  Strata strata(run.watches, run.threads);
  strata.finish();
  const WatchEvidence evidence(run.watches, run.told, strata);
  EXPECT_EQ(evidence.at(quick + slow).brief_until_ns, briefly + 100);
  EXPECT_EQ(evidence.at(quick + slow + 1).brief_until_ns, 8 * briefly);
}

// As late as elsewhere, 30 ms would be 90, in a thread that has 43 in all: communication seen elsewhere is not reduced
// for it.
TEST(Censoring, WhatWasSeenComesFirst) {
  Recording run(3);
  look(run, 4, true, for_long, early);
  look(run, 9, true, for_long, late);
  look(run, 30, false, briefly, early, 2);
  const Matrix matrix = run.estimate();
  ASSERT_EQ(matrix.size(), 2U);
  EXPECT_NEAR(*matrix[0].true_sharing.cost_s, matrix[0].producer == 1 ? 0.013 : 0.030, 1e-12);
  EXPECT_NEAR(*matrix[1].true_sharing.cost_s, matrix[1].producer == 1 ? 0.013 : 0.030, 1e-12);
}

TEST(Estimator, ThreadsWithTooFewWatchesArePooledByProcess) {
  Recording run(100);
  for (std::uint32_t i = 0; i < 100; ++i) {
    if (i % 10 == 0) {
      run.watch(eligible(i, line), {seen((i + 1) % 100, i)});
    } else {
      run.sample(eligible(i, line));
    }
  }
  run.estimate();
  EXPECT_NEAR(run.total_s, 0.1, 1e-12);
  EXPECT_EQ(run.unwatched_ns, 0);
}

TEST(Estimator, TimeThatNoWatchSpeaksForIsTold) {
  Recording run(2);
  for (int i = 0; i < 5; ++i) {
    run.sample(eligible(0, line));
  }
  EXPECT_TRUE(run.estimate().empty());
  EXPECT_NEAR(run.unwatched_ns, 5e6, 1e-6);
}

TEST(Estimator, AWatchsTimeIsSharedByWhatItsThreadConsumed) {
  Recording run(3);
  const std::vector<SeenCommunication> timeline = {seen(1, 0), seen(0, 1), seen(2, 0, false), seen(1, 2)};
  run.watch(eligible(0, line), timeline);
  run.watch(eligible(0, line), timeline);
  const Matrix matrix = run.estimate();
  ASSERT_EQ(matrix.size(), 4U);  // (0,1) (1,0) (1,2) (2,0)
  EXPECT_NEAR(matrix[0].cost(), 0, 1e-12);
  EXPECT_NEAR(*matrix[1].true_sharing.cost_s, 0.001, 1e-12);
  EXPECT_NEAR(matrix[2].cost(), 0, 1e-12);
  EXPECT_NEAR(*matrix[3].false_sharing.cost_s, 0.001, 1e-12);
  EXPECT_EQ(matrix[0].true_sharing.seen, 2U);
}

TEST(Estimator, AProducersTimeGoesToWhatItsWatchSaw) {
  Recording run(3);
  run.watch(eligible(0, line), {seen(0, 1), seen(0, 2)});
  run.watch(eligible(0, line), {seen(0, 1), seen(0, 2)});
  const Matrix matrix = run.estimate();
  ASSERT_EQ(matrix.size(), 2U);
  EXPECT_NEAR(matrix[0].cost(), 0.001, 1e-12);
  EXPECT_NEAR(matrix[1].cost(), 0.001, 1e-12);
}

TEST(Estimator, CoresLeaveOutTheSameCore) {
  Recording run(2);
  auto same = seen(0, 1);
  same.producer.cpu = same.consumer.cpu = 3;
  run.watch(eligible(1, line), {same, seen(0, 1)});
  const Matrix cores = run.estimate(core_pair);
  ASSERT_EQ(cores.size(), 1U);
  EXPECT_EQ(cores[0].true_sharing.seen, 1U);
}

TEST(Estimator, TellsWhetherAllWasOnOneProcessor) {
  auto same = seen(0, 1);
  same.producer.cpu = same.consumer.cpu = 3;
  auto moved = same;
  moved.producer.cpu = 2;
  for (const auto& [other, one] : {std::pair{same, true}, std::pair{moved, false}}) {
    Recording run(2);
    run.watch(eligible(1, line), {same, other});
    const Matrix matrix = run.estimate();
    ASSERT_EQ(matrix.size(), 1U);
    EXPECT_EQ(matrix[0].true_sharing.one_processor, one);
    EXPECT_FALSE(matrix[0].false_sharing.one_processor) << "there is none";
  }
}

TEST(Estimator, DamagedWeightsStayFinite) {
  Recording run(2);
  auto zero = eligible(0, line, 0);
  run.watch(zero, {seen(1, 0)});
  run.watch(eligible(0, line), {});
  run.watch(eligible(0, line), {});
  const Matrix matrix = run.estimate();
  ASSERT_EQ(matrix.size(), 1U);
  EXPECT_EQ(*matrix[0].true_sharing.cost_s, 0);
  EXPECT_TRUE(std::isfinite(matrix[0].true_sharing.cost_ci95->high));
}

TEST(Estimator, NoMoreTimeThanThereIs) {
  Recording run(2);
  run.watch(eligible(0, line), {seen(1, 0, false, 7)});
  run.watch(eligible(0, line), {seen(1, 0, false, 7)});
  const Matrix matrix = run.estimate();
  EXPECT_NEAR(*matrix[0].false_sharing.cost_s, 0.002, 1e-12);
  EXPECT_LE(matrix[0].false_sharing.cost_ci95->high, 0.002 + 1e-12);
}

// Two threads, watched once each: they share a stratum, and one event may stand for more than that, up to all.
TEST(Estimator, OneEventMayExceedWhatIsHardlyWatched) {
  Recording run(3);
  run.watch(eligible(0, 0x100000), {seen(1, 0, false, 7)});
  run.watch(eligible(1, 0x200000), {});
  for (int i = 0; i < 20; ++i) {
    run.watch(eligible(0, 0x900000, ms, profile::sample_suspected), {});
  }
  EXPECT_NEAR(*run.estimate()[0].false_sharing.cost_s, 0.007, 1e-12);
  Recording alone(3);
  alone.watch(eligible(0, 0x100000), {seen(1, 0, false, 7)});
  alone.watch(eligible(1, 0x200000), {});
  EXPECT_NEAR(*alone.estimate()[0].false_sharing.cost_s, 0.002, 1e-12);
}

// One of four watched samples, which stand for a hundred, saw an event. The variance allows for four more watches of
// middling outcome; if events stand for as many as `weight`, so would those.
TEST(Estimator, AnEventThatMightHaveBeenSeenStandsForAsManyAsOneThatWas) {
  const auto half_width_s = [](double weight) {
    constexpr double samples = 100;
    Expansion expansion;
    Stratum stratum;
    stratum.eligible = static_cast<std::uint64_t>(samples);
    stratum.watched = 4;
    stratum.eligible_weight = samples * ms;
    stratum.watched_weight = 4 * ms;
    stratum.thread = 0;
    expansion.strata = {stratum, stratum};  // the other one: so that time does not limit the interval
    expansion.strata[1].eligible_weight *= 1000;
    const SeenCommunication event = seen(1, 0);
    const Matrix matrix = matrix_of(std::vector<Contribution>{{&event, 0, 0, ms, weight * ms}}, expansion, thread_pair);
    return matrix.at(0).true_sharing.cost_ci95->high - *matrix.at(0).true_sharing.cost_s;
  };
  const auto expected_s = [](double weight) {
    const double ratio = weight / 4;
    const double p = (4 * ratio + 2) / 8;
    const double residuals = weight * weight - 2 * ratio * weight;  // watched_weight2 is 0 here
    const double cost_s = 0.1 * ratio;
    const double variance = 0.1 * 0.1 * (residuals + 4 * p * (weight - p)) / 7 / 4;
    return event_interval(cost_s, variance, 0).high - cost_s;
  };
  EXPECT_NEAR(half_width_s(1), expected_s(1), 1e-4);
  EXPECT_NEAR(half_width_s(3), expected_s(3), 1e-4);
}

TEST(Estimator, InvalidationsAreCountedApart) {
  SeenInvalidation invalidation;
  invalidation.store.thread = ThreadId{0};
  invalidation.store.bytes = LineBytes::range(0, 8);
  invalidation.read.thread = ThreadId{1};
  invalidation.read.bytes = LineBytes::range(8, 8);
  OwnershipTimeline timeline;
  timeline.invalidations = {invalidation, invalidation};
  const Matrix matrix = invalidation_matrix(std::span(&timeline, 1));
  ASSERT_EQ(matrix.size(), 1U);
  EXPECT_EQ(matrix[0].producer, 0U);
  EXPECT_EQ(matrix[0].consumer, 1U);
  EXPECT_EQ(matrix[0].false_sharing.seen, 2U);
  EXPECT_FALSE(matrix[0].false_sharing.cost_s);
}

struct Coverage {
  double mean = 0;
  int covered = 0;
};

/// Thread 0 spends `share` of `samples` ms on a line that it consumes from thread 1; `watched` of all samples open a
/// watch; a watch sees the communication with `probability`.
Coverage simulate(int samples, double share, double watched, double probability, int rounds) {
  std::mt19937_64 random(12345);
  std::uniform_real_distribution<double> unit(0, 1);
  Coverage result;
  const double truth = share * samples * 1e-3;
  for (int round = 0; round < rounds; ++round) {
    Recording run(2);
    for (int i = 0; i < samples; ++i) {
      const bool shared = unit(random) < share;
      const auto row = eligible(0, shared ? line : 0x900000 + 64 * static_cast<std::uint64_t>(unit(random) * 100000));
      if (unit(random) >= watched) {
        run.sample(row);
      } else if (shared && unit(random) < probability) {
        run.watch(row, {seen(1, 0, false, 1 / probability)});
      } else {
        run.watch(row, {});
      }
    }
    const Matrix matrix = run.estimate();
    if (!matrix.empty()) {
      const Amount& amount = matrix[0].false_sharing;
      result.mean += *amount.cost_s / truth / rounds;
      result.covered += amount.cost_ci95->low <= truth && truth <= amount.cost_ci95->high ? 1 : 0;
    }
  }
  return result;
}

TEST(EstimatorSimulation, UnbiasedAndCoveredWhenWatchesSeeEverything) {
  const Coverage c = simulate(2000, 0.3, 0.1, 1, 200);
  EXPECT_NEAR(c.mean, 1, 0.03);
  EXPECT_GE(c.covered, 180);
}

TEST(EstimatorSimulation, UnbiasedAndCoveredWhenWordsAreDrawn) {
  const Coverage c = simulate(2000, 0.3, 0.2, 1.0 / 7, 200);
  EXPECT_NEAR(c.mean, 1, 0.06);
  EXPECT_GE(c.covered, 176);
}

TEST(EstimatorSimulation, CoveredWithFewWatches) {
  const Coverage c = simulate(200, 0.6, 0.05, 1, 300);
  EXPECT_NEAR(c.mean, 1, 0.06);
  EXPECT_GE(c.covered, 270);
}

}  // namespace
}  // namespace crosstalk::attribution::test::estimator_test
