// SPDX-License-Identifier: Apache-2.0
// The parts of loops' time, and what they lead to, from times by thread and samples.
#include "attribution/busy/loop_busy.h"

#include <gtest/gtest.h>

#include "tests/attribution/loop_rows.h"
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

TEST_F(LoopBusy, ImbalanceThatSpinningHidesIsAdvisedOf) {
  LoopRow loop = loop_of({{0, 2, 2, 0}, {1, 2, 2, 1.5}});
  loop.samples = 1000;
  const auto advice = figures_of(loop).advice;
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].section, "5.4.8");
  loop.samples = 8;
  EXPECT_TRUE(figures_of(loop).advice.empty()) << "chance explains it";
  EXPECT_TRUE(figures_of(loop_of({{0, 2, 2, 1}, {1, 2, 2, 1}})).advice.empty()) << "equal work";
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
