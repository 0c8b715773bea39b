// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/loop_threads.h"

#include <gtest/gtest.h>

#include "tests/attribution/loop_rows.h"
#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::loop_threads_test {
namespace {

class LoopThreads : public testing::Test {
 protected:
  LoopThreads()
      : processes_(1),
        threads_(make_threads(4)),
        spaces_(processes_, modules_),
        view_(processes_, threads_, spaces_, code_) {}

  std::optional<double> imbalance(const LoopRow& loop) { return imbalance_of(loop, view_); }

  std::vector<profile::ProcessRow> processes_;
  std::vector<profile::ThreadRow> threads_;
  std::vector<profile::ModuleRow> modules_;
  AddressSpaces spaces_;
  FakeCode code_;
  ProgramView view_;
};

TEST_F(LoopThreads, UnequalTimesAreImbalance) {
  EXPECT_NEAR(imbalance(loop_of({{0, 2, 2, 0}, {1, 1, 1, 0}})).value(), 0.25, 1e-9);
  EXPECT_FALSE(imbalance(loop_of({{0, 2, 2, 0}}))) << "one thread";
}

TEST_F(LoopThreads, ThatCameOneAfterAnotherAreNoImbalance) {
  threads_[0].end_ns = 100;
  threads_[1].begin_ns = 50;
  EXPECT_TRUE(imbalance(loop_of({{0, 2, 2, 0}, {1, 1, 1, 0}}))) << "they met";
  threads_[1].begin_ns = 100;
  EXPECT_FALSE(imbalance(loop_of({{0, 2, 2, 0}, {1, 1, 1, 0}})));
}

TEST_F(LoopThreads, ThatSpinForTheSlowestDoNotWork) {
  // All have been in the loop as long as the slowest; three of them waited for it most of that time.
  const LoopRow loop = loop_of({{0, 2, 2, 0}, {1, 2, 2, 1.5}, {2, 2, 2, 1.5}, {3, 2, 2, 1.5}});
  EXPECT_NEAR(imbalance(loop).value(), 1 - 0.875 / 2, 1e-9);
  EXPECT_NEAR(threads_at_once(loop, nullptr), 4, 1e-9) << "those that spin are on processors, too";
}

TEST_F(LoopThreads, ThatDoNothingButWaitHaveNoWorkToShareOut) {
  EXPECT_FALSE(imbalance(loop_of({{0, 1, 1, 1}, {1, 1, 1, 1.01}})));
}

TEST_F(LoopThreads, AnImbalanceIsBeyondChanceIfThereAreSamplesForIt) {
  LoopRow loop = loop_of({{0, 0.24, 0.24, 0}, {1, 0.172, 0.172, 0}});
  const double found = imbalance(loop).value();
  EXPECT_FALSE(is_beyond_chance(found, loop)) << "no samples";
  loop.samples = 103;
  EXPECT_FALSE(is_beyond_chance(found, loop)) << "60 and 43 of them";
  loop.samples = 1030;
  EXPECT_TRUE(is_beyond_chance(found, loop));
  EXPECT_FALSE(is_beyond_chance(0.02, loop));
}

TEST_F(LoopThreads, AreNoMoreAtOnceThanThereAreProcessors) {
  const LoopRow loop = loop_of({{0, 2, 2, 0}, {1, 2, 2, 0}, {2, 2, 2, 0}});
  models::Machine machine;
  EXPECT_NEAR(threads_at_once(loop, &machine), 3, 1e-9) << "its processors are not known";
  machine.processors.resize(2);
  EXPECT_NEAR(threads_at_once(loop, &machine), 2, 1e-9);
  EXPECT_NEAR(threads_at_once(loop_of({}), &machine), 1, 1e-9);
}

}  // namespace
}  // namespace crosstalk::attribution::test::loop_threads_test
