// SPDX-License-Identifier: Apache-2.0
// Totals of an interval from totals since a recording's begin.
#include "daemon/interval_totals.h"

#include <gtest/gtest.h>

namespace crosstalk::daemon::interval_totals_test {
namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr auto all = [](ThreadId) { return true; };

profile::ThreadRow thread(std::uint64_t cpu_ms, std::uint64_t ran_ms) {
  profile::ThreadRow row;
  row.id = ThreadId{7};
  row.begin_ns = 100 * ms;
  row.cpu_ns = cpu_ms * ms;
  row.ran_ns = ran_ms * ms;
  row.samples = cpu_ms, row.traps = 2 * cpu_ms, row.armed = 3 * cpu_ms, row.lost = 4 * cpu_ms;
  row.handlers_ns = 5 * cpu_ms, row.switches_ns = 6 * cpu_ms, row.switches = 7 * cpu_ms;
  row.handler_samples_ns = 8 * cpu_ms;
  row.waited_ns = 9 * ran_ms;
  return row;
}

TEST(IntervalTotals, OfThreadsAreDifferences) {
  IntervalTotals first;
  const profile::ThreadRow began = first.of(thread(30, 30), 0, 150 * ms);
  EXPECT_EQ(began.cpu_ns, 30 * ms);
  EXPECT_EQ(began.begin_ns, 100 * ms);
  IntervalTotals second = first.next(all);
  const profile::ThreadRow then = second.of(thread(50, 50), 150 * ms, 200 * ms);
  EXPECT_EQ(then.cpu_ns, 20 * ms);
  EXPECT_EQ(then.begin_ns, 150 * ms);
  EXPECT_EQ(then.end_ns, 0U);
  EXPECT_EQ(then.samples, 20U);
  EXPECT_EQ(then.traps, 40U);
  EXPECT_EQ(then.armed, 60U);
  EXPECT_EQ(then.lost, 80U);
  EXPECT_EQ(then.handlers_ns, 100U);
  EXPECT_EQ(then.switches_ns, 120U);
  EXPECT_EQ(then.switches, 140U);
  EXPECT_EQ(then.handler_samples_ns, 160U);
  EXPECT_EQ(then.ran_ns, 20 * ms);
  EXPECT_EQ(then.waited_ns, 180U);
}

TEST(IntervalTotals, ARowThatIsPutAgainCountsFromTheSameBegin) {
  IntervalTotals first;
  (void)first.of(thread(30, 30), 0, 150 * ms);
  IntervalTotals second = first.next(all);
  EXPECT_EQ(second.of(thread(40, 40), 150 * ms, 170 * ms).cpu_ns, 10 * ms);
  EXPECT_EQ(second.of(thread(50, 50), 150 * ms, 200 * ms).cpu_ns, 20 * ms);
  EXPECT_EQ(second.next(all).of(thread(60, 60), 200 * ms, 250 * ms).cpu_ns, 10 * ms);
}

TEST(IntervalTotals, AThreadOfWhichAFileTellsNothingCountsOnInTheNext) {
  IntervalTotals first;
  (void)first.of(thread(30, 30), 0, 150 * ms);
  IntervalTotals third = first.next(all).next(all);
  const profile::ThreadRow then = third.of(thread(50, 50), 200 * ms, 250 * ms);
  EXPECT_EQ(then.samples, 20U);
  EXPECT_EQ(then.cpu_ns, 20 * ms);
}

/// A thread's own clock is read at its samples only: the scheduler tells of the time since then.
TEST(IntervalTotals, TimeSinceTheLastSampleCountsWhereItWasUsed) {
  IntervalTotals first;
  EXPECT_EQ(first.of(thread(30, 38), 0, 150 * ms).cpu_ns, 38 * ms);
  IntervalTotals second = first.next(all);
  EXPECT_EQ(second.of(thread(30, 38), 150 * ms, 200 * ms).cpu_ns, 0U);
  IntervalTotals third = second.next(all);
  EXPECT_EQ(third.of(thread(70, 70), 200 * ms, 250 * ms).cpu_ns, 32 * ms) << "70 in all";
}

TEST(IntervalTotals, NoThreadHasMoreTimeThanHasElapsed) {
  IntervalTotals first;
  EXPECT_EQ(first.of(thread(60, 0), 0, 150 * ms).cpu_ns, 50 * ms) << "it began at 100 ms";
  IntervalTotals second = first.next(all);
  EXPECT_EQ(second.of(thread(100, 0), 150 * ms, 200 * ms).cpu_ns, 50 * ms) << "10 ms are left from before";
  profile::ThreadRow ended = thread(100, 0);
  ended.end_ns = 170 * ms;
  EXPECT_EQ(second.of(ended, 150 * ms, 200 * ms).cpu_ns, 20 * ms);
  ended.end_ns = 140 * ms;
  EXPECT_EQ(second.of(ended, 150 * ms, 200 * ms).cpu_ns, 0U);
  EXPECT_EQ(second.of(ended, 150 * ms, 200 * ms).end_ns, 150 * ms) << "not before the file";
}

TEST(IntervalTotals, OfThreadsThatAreGoneAreForgotten) {
  IntervalTotals first;
  (void)first.of(thread(30, 30), 0, 150 * ms);
  IntervalTotals second = first.next([](ThreadId) { return false; });
  EXPECT_EQ(second.of(thread(30, 0), 0, 300 * ms).cpu_ns, 30 * ms);
}

profile::ThreadWaitRow wait(std::uint64_t waited_ns, std::uint64_t count, std::uint64_t site = 0x10) {
  profile::ThreadWaitRow row;
  row.thread = ThreadId{7}, row.kind = profile::WaitKind::mutex, row.site = site;
  row.waited_ns = waited_ns, row.count = count;
  return row;
}

profile::ThreadRegionRow region(std::uint64_t elapsed_ns, std::uint64_t entries, std::uint64_t barrier_ns) {
  profile::ThreadRegionRow row;
  row.thread = ThreadId{7}, row.region = profile::RegionId{1};
  row.entries = entries, row.elapsed_ns = elapsed_ns, row.waited_ns = {10, barrier_ns, 30};
  return row;
}

TEST(IntervalTotals, OfWaitsAndRegionsAreDifferencesByPlace) {
  IntervalTotals first;
  EXPECT_EQ(first.of(wait(50, 4), 1000).waited_ns, 50U);
  EXPECT_EQ(first.of(region(500, 3, 20), 1000).elapsed_ns, 500U);
  IntervalTotals third = first.next(all).next(all);  // nothing was told in the second one
  EXPECT_EQ(third.of(wait(70, 4), 1000).waited_ns, 20U);
  EXPECT_EQ(third.of(wait(70, 4), 1000).count, 0U) << "the wait goes on";
  EXPECT_EQ(third.of(wait(70, 4, 0x20), 1000).count, 4U) << "of another place";
  EXPECT_EQ(third.of(region(700, 4, 25), 1000).entries, 1U);
  EXPECT_EQ(third.of(region(700, 4, 25), 1000).elapsed_ns, 200U);
  EXPECT_EQ(third.of(region(700, 4, 25), 1000).waited_ns, (std::array<std::uint64_t, 3>{0, 5, 0}));
  EXPECT_EQ(third.of(region(600, 4, 25), 1000).elapsed_ns, 100U);
}

/// The threads go on while a busy recorder reads their tables.
TEST(IntervalTotals, WhatIsReadTooLateIsLeftToTheNextInterval) {
  IntervalTotals first;
  EXPECT_EQ(first.of(wait(120, 1), 100).waited_ns, 100U);
  EXPECT_EQ(first.of(region(130, 1, 110), 100).elapsed_ns, 100U);
  IntervalTotals second = first.next(all);
  EXPECT_EQ(second.of(wait(150, 2), 100).waited_ns, 50U);
  EXPECT_EQ(second.of(region(150, 2, 120), 100).elapsed_ns, 50U);
  EXPECT_EQ(second.of(region(150, 2, 120), 100).waited_ns, (std::array<std::uint64_t, 3>{0, 20, 0}));
}

/// A wait that a jump ends takes back what was counted of it.
TEST(IntervalTotals, WhatWasToldIsNotToldAgain) {
  IntervalTotals first;
  EXPECT_EQ(first.of(wait(90, 2), 100).waited_ns, 90U);
  IntervalTotals second = first.next(all);
  EXPECT_EQ(second.of(wait(40, 1), 100).waited_ns, 0U);
  IntervalTotals third = second.next(all);
  EXPECT_EQ(third.of(wait(95, 3), 100).waited_ns, 5U);
  EXPECT_EQ(third.of(wait(95, 3), 100).count, 1U);
}

TEST(IntervalTotals, OfTheSessionAreDifferencesAndSumsOfItsThreads) {
  profile::Session session;
  session.recorder_cpu_ns = 40;
  session.skipped_probes = {1, 2, 3};
  session.unobserved_cpu_ns = 100;
  IntervalTotals first;
  (void)first.of(thread(30, 30), 0, 150 * ms);
  EXPECT_EQ(first.of(session).recorder_cpu_ns, 40U);
  EXPECT_EQ(first.of(session).waits.threads, 1U);
  IntervalTotals second = first.next(all);
  EXPECT_EQ(second.of(session).waits.threads, 0U) << "it has not run";
  (void)second.of(thread(50, 50), 150 * ms, 200 * ms);
  session.recorder_cpu_ns = 70;
  session.unobserved_cpu_ns = 130;
  session.skipped_probes = {1, 4, 6};
  const profile::Session told = second.of(session);
  EXPECT_EQ(told.recorder_cpu_ns, 30U);
  EXPECT_EQ(told.unobserved_cpu_ns, 30U);
  EXPECT_EQ(told.skipped_probes.unreadable, 0U);
  EXPECT_EQ(told.skipped_probes.in_handlers, 2U);
  EXPECT_EQ(told.skipped_probes.beside_another, 3U);
  EXPECT_EQ(told.waits.threads, 1U);
  EXPECT_EQ(told.waits.ran_ns, 20 * ms);
  EXPECT_EQ(told.waits.waited_ns, 180U);
}

}  // namespace
}  // namespace crosstalk::daemon::interval_totals_test
