// SPDX-License-Identifier: Apache-2.0
// From analyses to snapshots: figures, numbers of threads, and the window.
#include <gtest/gtest.h>

#include "attribution/groups.h"
#include "driver/live/figures.h"
#include "driver/live/thread_numbers.h"
#include "driver/live/window.h"
#include "sample_analysis.h"

namespace crosstalk::driver::live::live_figures_test {
namespace {

attribution::Analysis analysis_of(std::uint64_t begin_s, std::uint64_t end_s) {
  attribution::Analysis analysis = driver::test::sample_analysis();
  analysis.session.begin_ns = begin_s * 1'000'000'000;
  analysis.session.end_ns = end_s * 1'000'000'000;
  analysis.duration_s = static_cast<double>(end_s - begin_s);
  analysis.session.config.budget = 0.03;
  analysis.session.recorder_cpu_ns = 20'000'000;
  for (attribution::ObjectRow& row : analysis.communication.objects) {
    for (const attribution::Cell& cell : row.cells) {
      row.true_sharing = attribution::sum_amounts(row.true_sharing, cell.true_sharing);
      row.false_sharing = attribution::sum_amounts(row.false_sharing, cell.false_sharing);
    }
  }
  return analysis;
}

Interval interval(std::uint64_t begin_s, std::uint64_t end_s) {
  return {analysis_of(begin_s, end_s), 0.002, 0, static_cast<double>(end_s)};
}

TEST(LiveFigures, TheHeadSaysWhatIsObserved) {
  const attribution::Analysis analysis = analysis_of(0, 2);
  const Snapshot snapshot = snapshot_of(analysis, analysis, {3, 17.5, 2, 0.004, 2});
  EXPECT_EQ(snapshot.sequence, 3U);
  EXPECT_EQ(snapshot.command, "./histogram --threads 4");
  EXPECT_EQ(snapshot.pids, std::vector<std::int32_t>{4242});
  EXPECT_DOUBLE_EQ(*snapshot.cpu_s, 5.02);
  EXPECT_DOUBLE_EQ(*snapshot.processors, 2.51);
  EXPECT_EQ(snapshot.watching, "5 of 5 threads sampled: 1532 samples, 402 watches, 913 traps");
  EXPECT_DOUBLE_EQ(*snapshot.overhead.budget, 0.03);
  EXPECT_DOUBLE_EQ(*snapshot.overhead.recorder_cpu_s, 0.02);
  EXPECT_EQ(snapshot.losses.unread_threads, 2U);
  ASSERT_EQ(snapshot.warnings.size(), 1U);
}

TEST(LiveFigures, RowsHaveTheLatestFiguresBesideTheWindows) {
  const attribution::Analysis window = analysis_of(0, 4);
  attribution::Analysis latest = analysis_of(2, 4);
  latest.communication.cells.resize(1);
  latest.communication.cells[0].false_sharing.cost_s = 0.1;
  latest.communication.objects.resize(1);
  const Snapshot snapshot = snapshot_of(window, latest, {});
  ASSERT_EQ(snapshot.cells.size(), window.communication.cells.size());
  EXPECT_DOUBLE_EQ(*snapshot.cells[0].false_cost_s, 0.412);
  EXPECT_DOUBLE_EQ(*snapshot.cells[0].exchange.latest_cost_s, 0.1);
  EXPECT_DOUBLE_EQ(*snapshot.cells[1].exchange.latest_cost_s, 0);
  ASSERT_EQ(snapshot.objects.size(), 2U);
  EXPECT_EQ(snapshot.objects[0].label, "counters[1].hits");
  EXPECT_EQ(snapshot.objects[0].sharing, "true_sharing");
  EXPECT_GT(snapshot.objects[0].exchange.latest_seen, 0U);
  EXPECT_EQ(snapshot.objects[1].exchange.latest_seen, 0U);
  ASSERT_EQ(snapshot.objects[0].lines.size(), 1U);
  EXPECT_EQ(snapshot.objects[0].lines[0].line, 41U);
  ASSERT_EQ(snapshot.objects[0].pairs.size(), 2U);
  EXPECT_EQ(snapshot.objects[0].pairs[0].consumer, 2U);
  EXPECT_EQ(snapshot.lines[0].object, "counters");
}

TEST(LiveFigures, CostsOfARefreshWithTooFewWatchesAreUnknown) {
  attribution::Analysis window = analysis_of(0, 4);
  window.communication.true_sharing.cost_s = 0.5;
  window.warnings.push_back({"too_few_events", "costs are unknown: one watch"});
  attribution::Analysis latest = analysis_of(2, 4);
  latest.communication.cells.clear();
  latest.communication.true_sharing = latest.communication.false_sharing = {};
  latest.warnings.push_back({"too_few_events", "costs are unknown"});
  const Snapshot snapshot = snapshot_of(window, latest, {});
  EXPECT_FALSE(snapshot.cells[0].exchange.latest_cost_s);
  EXPECT_TRUE(snapshot.cells[0].exchange.cost_s);
  const auto message = [&] {
    for (const WarningRow& warning : snapshot_of(window, latest, {}).warnings) {
      if (warning.code == "too_few_events") {
        return warning.message;
      }
    }
    return std::string();
  };
  EXPECT_TRUE(message().starts_with("the costs of some refreshes")) << "others are known";
  window.communication.true_sharing.cost_s.reset();
  window.communication.false_sharing.cost_s.reset();
  EXPECT_EQ(message(), "costs are unknown: one watch");
}

TEST(LiveFigures, AGainThatIsMostLikelyNoneHasItsLimit) {
  attribution::Analysis window = analysis_of(0, 4);
  attribution::Amount& amount = window.communication.cells[0].false_sharing;
  amount.gain_s = 0;
  amount.gain_ci95 = attribution::Interval{0, 0.3};
  window.findings = {{"a lock", 1, "lock", std::nullopt, attribution::Interval{0, 2}},
                     {"a loop", 0, "loop", std::nullopt, std::nullopt}};
  const Snapshot snapshot = snapshot_of(window, window, {});
  EXPECT_FALSE(snapshot.cells[0].exchange.gain_s);
  EXPECT_DOUBLE_EQ(snapshot.cells[0].exchange.gain_most_s.value_or(-1), 0.3);
  EXPECT_FALSE(snapshot.findings[0].gain_s);
  EXPECT_DOUBLE_EQ(snapshot.findings[0].gain_most_s.value_or(-1), 1) << "no more than its cost";
  EXPECT_FALSE(snapshot.findings[1].gain_s || snapshot.findings[1].gain_most_s);
}

TEST(LiveFigures, AHugeMatrixKeepsItsCostliestPairs) {
  attribution::Analysis window = driver::test::crowded_analysis(700);
  const Snapshot snapshot = snapshot_of(window, window, {});
  EXPECT_EQ(snapshot.cells.size(), most_cells);
  EXPECT_EQ(snapshot.warnings.back().code, "rows_left_out");
  for (std::size_t i = 1; i < snapshot.cells.size(); ++i) {
    EXPECT_LT(std::pair(snapshot.cells[i - 1].producer, snapshot.cells[i - 1].consumer),
              std::pair(snapshot.cells[i].producer, snapshot.cells[i].consumer));
  }
}

TEST(LiveFigures, OfVeryManyThreadsTheBusiestAreListed) {
  attribution::Analysis window = driver::test::crowded_analysis(5000);
  window.threads[4999].cpu_s = 9;
  const Snapshot snapshot = snapshot_of(window, window, {});
  ASSERT_EQ(snapshot.threads.size(), most_threads);
  EXPECT_EQ(snapshot.threads.back().index, 4999U);
  EXPECT_EQ(snapshot.threads[1].index, 1U);
}

TEST(LiveWindow, OldIntervalsLeaveIt) {
  Window window(10, 2);
  for (std::uint64_t begin = 0; begin < 20; begin += 2) {
    window.add(interval(begin, begin + 2));
    const Snapshot snapshot = window.next();
    EXPECT_EQ(snapshot.sequence, begin / 2 + 1);
    EXPECT_DOUBLE_EQ(snapshot.window_s, std::min<double>(static_cast<double>(begin) + 2, 10));
    EXPECT_DOUBLE_EQ(snapshot.latest_s, 2);
    EXPECT_NEAR(*snapshot.overhead.producer_cpu_s, 0.001 * snapshot.window_s, 1e-9);
    EXPECT_NEAR(*snapshot.overhead.recorder_cpu_s, 0.01 * snapshot.window_s, 1e-9);
  }
}

TEST(LiveWindow, AGapDoesNotCount) {
  Window window(10, 2);
  window.add(interval(0, 2));
  window.add(interval(2, 4));
  window.add(interval(60, 62));
  EXPECT_DOUBLE_EQ(window.next().window_s, 2);
}

TEST(LiveWindow, TheBeginningOfAnIntervalIsReplacedByAllOfIt) {
  Window window(10, 2);
  window.add_begun(interval(0, 1));
  EXPECT_DOUBLE_EQ(window.next().window_s, 1);
  window.add(interval(0, 2));
  const Snapshot snapshot = window.next();
  EXPECT_DOUBLE_EQ(snapshot.window_s, 2);
  EXPECT_EQ(snapshot.sequence, 2U);
}

profile::ThreadRow thread_row(std::uint32_t id, std::uint32_t process, std::int32_t tid, bool ended = false) {
  profile::ThreadRow row;
  row.id = ThreadId{id};
  row.process = ProcessId{process};
  row.tid = tid;
  row.end_ns = ended ? 9 : 0;
  return row;
}

std::vector<profile::ProcessRow> process_rows(std::vector<std::int32_t> pids) {
  std::vector<profile::ProcessRow> rows(pids.size());
  for (std::size_t i = 0; i < pids.size(); ++i) {
    rows[i].pid = pids[i];
  }
  return rows;
}

using Numbers = std::vector<std::uint32_t>;

TEST(ThreadNumbers, AThreadKeepsItsNumber) {
  ThreadNumbers numbers;
  const auto one = process_rows({100});
  EXPECT_EQ(numbers.of(std::vector{thread_row(0, 0, 100), thread_row(1, 0, 101)}, one), (Numbers{0, 1}));
  EXPECT_EQ(numbers.of(std::vector{thread_row(0, 0, 101), thread_row(1, 0, 102), thread_row(2, 0, 100)}, one),
            (Numbers{1, 2, 0}));
}

TEST(ThreadNumbers, AnEndedThreadsIdIsAnothers) {
  ThreadNumbers numbers;
  const auto one = process_rows({100});
  EXPECT_EQ(numbers.of(std::vector{thread_row(0, 0, 101, true), thread_row(1, 0, 101)}, one), (Numbers{0, 1}));
  EXPECT_EQ(numbers.of(std::vector{thread_row(0, 0, 101)}, one), (Numbers{1}));
}

TEST(ThreadNumbers, ProcessesMayHaveThreadsOfTheSameId) {
  ThreadNumbers numbers;
  EXPECT_EQ(numbers.of(std::vector{thread_row(0, 0, 1), thread_row(1, 1, 1)}, process_rows({100, 200})),
            (Numbers{0, 1}));
  EXPECT_EQ(numbers.of(std::vector{thread_row(0, 0, 1)}, process_rows({200})), (Numbers{1}));
}

}  // namespace
}  // namespace crosstalk::driver::live::live_figures_test
