// SPDX-License-Identifier: Apache-2.0
// Imbalance and the parts of loops' time, from times by thread and samples.
#include "attribution/busy/loop_busy.h"

#include <gtest/gtest.h>

#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::loop_busy_test {
namespace {

using models::CycleClass;

class LoopBusy : public testing::Test {
 protected:
  LoopBusy()
      : processes_(1),
        threads_(make_threads(4)),
        spaces_(processes_, modules_),
        view_(processes_, threads_, spaces_, code_) {}

  static LoopRow loop_of(const std::vector<LoopThread>& threads) {
    LoopRow loop;
    loop.id = 1;
    loop.share = 0.5;
    loop.header = 0x1000;
    loop.threads = threads;
    for (const LoopThread& thread : threads) {
      loop.cpu_s += thread.cpu_s;
    }
    return loop;
  }
  LoopFigures figures_of(const LoopRow& loop) {
    std::vector<LoopRow> loops = {loop};
    add_figures(loops, {nullptr, {}, standings_, {}}, view_);
    return *loops.front().figures;
  }

  std::vector<profile::ProcessRow> processes_;
  std::vector<profile::ThreadRow> threads_;
  std::vector<profile::ModuleRow> modules_;
  AddressSpaces spaces_;
  FakeCode code_;
  ProgramView view_;
  std::map<LoopPlace, LoopStanding> standings_;
};

TEST_F(LoopBusy, UnequalTimesAreImbalance) {
  EXPECT_NEAR(figures_of(loop_of({{0, 2, 2, 0}, {1, 1, 1, 0}})).imbalance.value(), 0.25, 1e-9);
  EXPECT_FALSE(figures_of(loop_of({{0, 2, 2, 0}})).imbalance) << "one thread";
}

TEST_F(LoopBusy, ThreadsThatCameOneAfterAnotherAreNoImbalance) {
  threads_[0].end_ns = 100;
  threads_[1].begin_ns = 50;
  EXPECT_TRUE(figures_of(loop_of({{0, 2, 2, 0}, {1, 1, 1, 0}})).imbalance) << "they met";
  threads_[1].begin_ns = 100;
  EXPECT_FALSE(figures_of(loop_of({{0, 2, 2, 0}, {1, 1, 1, 0}})).imbalance);
}

TEST_F(LoopBusy, WhoSpinsForTheSlowestDoesNotWork) {
  // All have been in the loop as long as the slowest; three of them waited for it most of that time.
  const LoopFigures figures = figures_of(loop_of({{0, 2, 2, 0}, {1, 2, 2, 1.5}, {2, 2, 2, 1.5}, {3, 2, 2, 1.5}}));
  EXPECT_NEAR(figures.imbalance.value(), 1 - 0.875 / 2, 1e-9);
  EXPECT_NEAR(figures.threads, 4, 1e-9) << "those that spin are on processors, too";
}

TEST_F(LoopBusy, ImbalanceThatSpinningHidesIsAdvisedOf) {
  const auto advice = figures_of(loop_of({{0, 2, 2, 0}, {1, 2, 2, 1.5}})).advice;
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].section, "5.4.8");
  EXPECT_TRUE(figures_of(loop_of({{0, 2, 2, 1}, {1, 2, 2, 1}})).advice.empty()) << "equal work";
}

TEST_F(LoopBusy, ThreadsThatDoNothingButWaitHaveNoWorkToShareOut) {
  EXPECT_FALSE(figures_of(loop_of({{0, 1, 1, 1}, {1, 1, 1, 1.01}})).imbalance);
}

TEST_F(LoopBusy, AccountsAddUpToTheCpuTime) {
  const LoopRow loop = loop_of({{0, 2, 2, 0}, {1, 1, 1, 0}});
  EXPECT_NEAR(figures_of(loop).waits.total(), 3, 1e-9);
  EXPECT_NEAR(figures_of(loop).waits[CycleClass::unattributed].value(), 3, 1e-9) << "no sample tells of it";
  standings_[{loop.module_file, loop.header}] = {0.5, 0.25, 0.5, 0, 0.75};
  const models::CycleAccount waits = figures_of(loop).waits;
  EXPECT_NEAR(waits.total(), 3, 1e-9);
  EXPECT_NEAR(waits[CycleClass::data].value(), 3 * 0.75 / 2, 1e-9);
  EXPECT_NEAR(waits[CycleClass::fpu].value(), 3 * 0.25, 1e-9);
}

TEST_F(LoopBusy, TimeInTheKernelIsNotWaitingForData) {
  LoopRow loop = loop_of({{0, 2, 2, 0, 1.5}});
  loop.kernel_s = 1.5;
  standings_[{loop.module_file, loop.header}] = {1, 0, 0, 0, 0};  // in user mode
  const models::CycleAccount waits = figures_of(loop).waits;
  EXPECT_NEAR(waits[CycleClass::kernel].value(), 1.5, 1e-9);
  EXPECT_NEAR(waits[CycleClass::data].value(), 0.5, 1e-9);
}

TEST_F(LoopBusy, SpinningForOthersIsNotWaitingForData) {
  LoopRow loop = loop_of({{0, 2, 2, 0}, {1, 2, 2, 1}});
  standings_[{loop.module_file, loop.header}] = {1.5, 0, 0, 0, 1.5};  // without what was spun
  loop.waited = Waited{0.5, 1.5, 0, 10};                              // half of it asleep
  const models::CycleAccount waits = figures_of(loop).waits;
  EXPECT_NEAR(waits.total(), 4, 1e-9);
  EXPECT_NEAR(waits[CycleClass::lock].value(), 0.25, 1e-9);
  EXPECT_NEAR(waits[CycleClass::barrier].value(), 0.75, 1e-9);
  EXPECT_NEAR(waits[CycleClass::condition].value(), 0, 1e-9);
  EXPECT_NEAR(waits[CycleClass::data].value(), 1.5, 1e-9);
}

TEST_F(LoopBusy, NoMoreIsSpunThanWasWaited) {
  LoopRow loop = loop_of({{0, 2, 2, 1.5}});
  loop.waited = Waited{0, 1, 0, 1};
  EXPECT_NEAR(figures_of(loop).waits[CycleClass::barrier].value(), 1, 1e-9);
  loop.waited.reset();
  EXPECT_FALSE(figures_of(loop).waits[CycleClass::barrier]) << "which kind it was is not known";
}

}  // namespace
}  // namespace crosstalk::attribution::test::loop_busy_test
