// SPDX-License-Identifier: Apache-2.0
// The parts of threads' elapsed time add up to it, with any evidence.
#include "attribution/busy/thread_waits.h"

#include <gtest/gtest.h>

#include "attribution/busy/loop_figures.h"
#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::thread_waits_test {
namespace {

using models::CycleClass;

constexpr std::uint64_t second = 1'000'000'000;

class ThreadWaits : public testing::Test {
 protected:
  /// One thread of 4 s, 3 of them on a processor.
  ThreadWaits() : rows_(make_threads(1)), samples_(1), waited_(1) {
    rows_[0].begin_ns = second;
    rows_[0].end_ns = 5 * second;
    ThreadSummary summary;
    summary.cpu_s = 3;
    summary.samples = 300;
    summary.kernel_share = 0.1;
    analysis_.threads = {summary};
    samples_[0].samples = 300;
    samples_[0].ns = 3e9;
    samples_[0].kernel_ns = 0.3e9;
  }
  /// The thread spends `cpu_s` in it: for `waiting_s` it waits for other threads, for half of the rest for data.
  void in_loop(double cpu_s, double waiting_s) {
    LoopFigures figures;
    figures.waits.at(CycleClass::barrier) = waiting_s;
    figures.waits.at(CycleClass::data) = (cpu_s - waiting_s) / 2;
    figures.waits.at(CycleClass::unattributed) = (cpu_s - waiting_s) / 2;
    LoopRow loop;
    loop.waited = Waited{0, waiting_s, 0, 1};
    loop.id = 1;
    loop.cpu_s = cpu_s;
    loop.threads = {{0, cpu_s, cpu_s, waiting_s}};
    loop.figures = std::make_shared<const LoopFigures>(figures);
    analysis_.loops = {loop};
  }
  /// Cost of accesses to a lock's line.
  void pays_for_lock(double cost_s) {
    ObjectRow object;
    object.sharing.kind = SharingKind::lock;
    Cell cell;
    cell.producer = 1;
    cell.true_sharing.cost_s = cost_s;
    object.cells = {cell};
    analysis_.communication.objects = {object};
  }
  const std::optional<models::CycleAccount>& result() {
    add_thread_waits(analysis_, {rows_, samples_, waited_});
    return analysis_.threads[0].waits;
  }

  std::vector<profile::ThreadRow> rows_;
  std::vector<ThreadTotal> samples_;
  std::vector<std::optional<Waited>> waited_;
  Analysis analysis_;
};

TEST_F(ThreadWaits, WaitingForAProcessorIsNoSleep) {
  EXPECT_FALSE(result().value()[CycleClass::runnable]) << "it is not known";
  rows_[0].ran_ns = 2 * second;  // as long as the recorder looked
  rows_[0].waited_ns = second / 2;
  const models::CycleAccount waits = result().value();
  EXPECT_NEAR(waits[CycleClass::runnable].value(), 0.75, 1e-9) << "of all of its CPU time";
  EXPECT_NEAR(waits[CycleClass::blocked].value(), 0.25, 1e-9);
}

TEST_F(ThreadWaits, AddUpToTheElapsedTime) {
  const models::CycleAccount waits = result().value();
  EXPECT_NEAR(waits.total(), 4, 1e-9);
  EXPECT_NEAR(waits[CycleClass::blocked].value(), 1, 1e-9);
  EXPECT_NEAR(waits[CycleClass::kernel].value(), 0.3, 1e-9);
  EXPECT_NEAR(waits[CycleClass::unattributed].value(), 2.7, 1e-9);
  EXPECT_FALSE(waits[CycleClass::lock]);
}

TEST_F(ThreadWaits, AddUpWithLoopsAndCostsOfLocks) {
  in_loop(2, 0);
  pays_for_lock(0.5);
  const models::CycleAccount waits = result().value();
  EXPECT_NEAR(waits.total(), 4, 1e-9);
  EXPECT_NEAR(waits[CycleClass::lock].value(), 0.5, 1e-9);
  EXPECT_NEAR(waits[CycleClass::data].value(), 1, 1e-9);
}

TEST_F(ThreadWaits, ClassesThatNoLoopTellsAreAbsent) {
  in_loop(2, 0);
  const auto& waits = result();
  ASSERT_TRUE(waits);
  EXPECT_GT((*waits)[CycleClass::data].value(), 0);
  for (const CycleClass untold : {CycleClass::committing, CycleClass::fpu, CycleClass::l1d, CycleClass::memory,
                                  CycleClass::frontend, CycleClass::branch, CycleClass::lock, CycleClass::io}) {
    EXPECT_FALSE((*waits)[untold]) << models::cycle_class_name(untold);
  }
}

TEST_F(ThreadWaits, AddUpWithMeasuredWaits) {
  in_loop(2, 0.5);
  pays_for_lock(0.7);  // measured waits take its place
  waited_[0] = Waited{0.4, 0.8, 0.1, 10};
  samples_[0].waiting_ns = 0.6e9;
  samples_[0].waiting_kernel_ns = 0.1e9;
  const models::CycleAccount waits = result().value();
  EXPECT_NEAR(waits.total(), 4, 1e-9);
  EXPECT_NEAR(waits[CycleClass::lock].value(), 0.4, 1e-9);
  EXPECT_NEAR(waits[CycleClass::barrier].value(), 0.8, 1e-9);
  EXPECT_NEAR(waits[CycleClass::condition].value(), 0.1, 1e-9);
  EXPECT_NEAR(waits[CycleClass::blocked].value(), 1 - (1.3 - 0.6), 1e-9) << "but for sleep in those waits";
  EXPECT_NEAR(waits[CycleClass::kernel].value(), 0.2, 1e-9);
  EXPECT_NEAR(waits[CycleClass::data].value(), 0.75, 1e-9) << "of what it did not wait in the loop";
}

TEST_F(ThreadWaits, AddUpWhereEvidenceClaimsMoreThanThereWas) {
  in_loop(6, 0);
  waited_[0] = Waited{3, 3, 3, 10};
  const models::CycleAccount waits = result().value();
  EXPECT_NEAR(waits.total(), 4, 1e-9);
  for (std::size_t i = 0; i < models::cycle_classes; ++i) {
    EXPECT_GE(waits[static_cast<CycleClass>(i)].value_or(0), 0);
  }
}

TEST_F(ThreadWaits, SleepThatWasSampledComesBesideTheCostOfLocks) {
  pays_for_lock(0.7);
  waited_[0] = Waited{0.4, 0, 0.1, 0, true};
  const models::CycleAccount waits = result().value();
  EXPECT_NEAR(waits.total(), 4, 1e-9);
  EXPECT_NEAR(waits[CycleClass::lock].value(), 1.1, 1e-9);
  EXPECT_NEAR(waits[CycleClass::condition].value(), 0.1, 1e-9);
  EXPECT_NEAR(waits[CycleClass::blocked].value(), 0.5, 1e-9) << "the rest of its sleep";
  EXPECT_FALSE(waits[CycleClass::barrier]) << "it may have waited awake";
  waited_[0] = Waited{1.5, 0, 0.5, 0, true};
  EXPECT_NEAR(result().value()[CycleClass::lock].value(), 0.7 + 0.75, 1e-9) << "it slept for no more than 1 s";
  EXPECT_NEAR(result().value().total(), 4, 1e-9);
}

TEST_F(ThreadWaits, AreNotKnownOfAThreadWhoseTimesAreNot) {
  rows_[0].end_ns = 0;  // and nor is when the session ended
  EXPECT_FALSE(result());
  analysis_.session.end_ns = 3 * second;
  EXPECT_NEAR(result().value().total(), 2, 1e-9);
}

}  // namespace
}  // namespace crosstalk::attribution::test::thread_waits_test
