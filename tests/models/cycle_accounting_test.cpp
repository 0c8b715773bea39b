// SPDX-License-Identifier: Apache-2.0
#include "models/cycle_accounting.h"

#include <gtest/gtest.h>

#include <random>

namespace crosstalk::models::cycle_accounting_test {
namespace {

TEST(CycleAccounting, WithoutEvidenceNothingIsAttributed) {
  const CycleAccount found = account({.elapsed_s = 2});
  EXPECT_DOUBLE_EQ(*found[CycleClass::unattributed], 2);
  EXPECT_FALSE(found[CycleClass::committing]);
  EXPECT_FALSE(found[CycleClass::memory]);
  EXPECT_DOUBLE_EQ(found.total(), 2);
}

TEST(CycleAccounting, SharesWaitsAsSamplesStand) {
  CycleEvidence evidence{.elapsed_s = 10};
  evidence.commit_bound_s = 2;
  evidence.standing = Standing{.fpu = 0.25, .data = 0.5};
  evidence.data_levels = LevelShares{0, 0.25, 0, 0.75};
  const CycleAccount found = account(evidence);
  EXPECT_DOUBLE_EQ(*found[CycleClass::committing], 2);
  EXPECT_DOUBLE_EQ(*found[CycleClass::fpu], 2);
  EXPECT_DOUBLE_EQ(*found[CycleClass::l2], 1);
  EXPECT_DOUBLE_EQ(*found[CycleClass::memory], 3);
  EXPECT_DOUBLE_EQ(*found[CycleClass::unattributed], 2);
  EXPECT_FALSE(found[CycleClass::data]);
  EXPECT_DOUBLE_EQ(found.total(), 10);
}

TEST(CycleAccounting, APointerChaseWaitsForMemory) {
  CycleEvidence evidence{.elapsed_s = 1};
  evidence.commit_bound_s = 0.01;
  evidence.standing = Standing{.data = 0.97};
  evidence.data_levels = LevelShares{0, 0, 0.02, 0.98};
  EXPECT_GT(*account(evidence)[CycleClass::memory], 0.8);
}

TEST(CycleAccounting, WhereTheLevelIsNotKnownItIsData) {
  CycleEvidence evidence{.elapsed_s = 1};
  evidence.standing = Standing{.data = 0.6};
  const CycleAccount found = account(evidence);
  EXPECT_DOUBLE_EQ(*found[CycleClass::data], 0.6);
  EXPECT_FALSE(found[CycleClass::committing]);
  ASSERT_EQ(found.notes.size(), 1U);  // commits are part of it
}

TEST(CycleAccounting, AReasonThatNothingTellsIsAbsentAndOneThatIsNeverFoundIsZero) {
  CycleEvidence evidence{.elapsed_s = 1};
  evidence.standing = Standing{.fpu = 0, .data = 0.5};
  const CycleAccount by_samples = account(evidence);
  EXPECT_DOUBLE_EQ(by_samples[CycleClass::fpu].value(), 0);
  EXPECT_FALSE(by_samples[CycleClass::frontend]);
  EXPECT_FALSE(by_samples[CycleClass::branch]);
  evidence.standing = Standing{.frontend = 0, .branch = 0.25};
  evidence.data_levels = LevelShares{0.5, 0.5, 0, 0};
  const CycleAccount counted = account(evidence);
  EXPECT_DOUBLE_EQ(counted[CycleClass::frontend].value(), 0);
  for (const CycleClass untold : {CycleClass::fpu, CycleClass::data, CycleClass::l1d, CycleClass::memory}) {
    EXPECT_FALSE(counted[untold]) << cycle_class_name(untold);
  }
  EXPECT_DOUBLE_EQ(counted[CycleClass::unattributed].value(), 0.75);
}

TEST(CycleAccounting, TimeOffTheProcessorComesFirst) {
  CycleEvidence evidence{.elapsed_s = 10};
  evidence.off_cpu_s = 6;
  evidence.io_s = 1;
  evidence.runnable_s = 2;
  evidence.lock_s = 1;
  evidence.barrier_s = 0.5;
  evidence.kernel_s = 1;
  evidence.commit_bound_s = 9;  // more than is left
  const CycleAccount found = account(evidence);
  EXPECT_DOUBLE_EQ(*found[CycleClass::io], 1);
  EXPECT_DOUBLE_EQ(*found[CycleClass::runnable], 2);
  EXPECT_DOUBLE_EQ(*found[CycleClass::blocked], 3);
  EXPECT_DOUBLE_EQ(*found[CycleClass::lock], 1);
  EXPECT_DOUBLE_EQ(*found[CycleClass::barrier], 0.5);
  EXPECT_DOUBLE_EQ(*found[CycleClass::kernel], 1);
  EXPECT_DOUBLE_EQ(*found[CycleClass::committing], 1.5);
  EXPECT_DOUBLE_EQ(*found[CycleClass::unattributed], 0);
}

TEST(CycleAccounting, SaysWhereWaitingForAProcessorIsNotTold) {
  CycleEvidence evidence{.elapsed_s = 3};
  evidence.off_cpu_s = 2;
  const CycleAccount found = account(evidence);
  EXPECT_DOUBLE_EQ(*found[CycleClass::blocked], 2);
  EXPECT_FALSE(found[CycleClass::runnable]);
  EXPECT_EQ(found.notes.size(), 1U);
}

TEST(CycleAccounting, AlwaysAddsUpToElapsedTime) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> amount(-0.5, 2);
  const auto maybe = [&]() -> std::optional<double> {
    return random() % 3 == 0 ? std::nullopt : std::optional(amount(random));
  };
  for (int i = 0; i < 2000; ++i) {
    CycleEvidence evidence{.elapsed_s = std::abs(amount(random))};
    evidence.off_cpu_s = maybe(), evidence.io_s = maybe(), evidence.runnable_s = maybe();
    evidence.lock_s = maybe(), evidence.barrier_s = maybe(), evidence.condition_s = maybe();
    evidence.kernel_s = maybe(), evidence.commit_bound_s = maybe();
    if (random() % 2 == 0) {
      evidence.standing = Standing{std::abs(amount(random)), std::abs(amount(random)), 0.1, 0.1};  // may exceed 1
    }
    if (random() % 2 == 0) {
      evidence.data_levels = LevelShares{0.1, 0.2, 0.3, 0.4};
    }
    const CycleAccount found = account(evidence);
    ASSERT_NEAR(found.total(), evidence.elapsed_s, 1e-12);
    for (std::size_t c = 0; c < cycle_classes; ++c) {
      ASSERT_GE(found[static_cast<CycleClass>(c)].value_or(0), 0);
    }
  }
}

TEST(CycleAccounting, ImbalanceIsWhatABarrierWouldCost) {
  EXPECT_DOUBLE_EQ(*imbalance(std::array{1.0, 1.0, 1.0, 2.0}), 1 - 1.25 / 2);
  EXPECT_DOUBLE_EQ(*imbalance(std::array{3.0, 3.0}), 0);
  EXPECT_FALSE(imbalance(std::array{3.0}));
  EXPECT_FALSE(imbalance(std::array{0.0, 0.0}));
}

}  // namespace
}  // namespace crosstalk::models::cycle_accounting_test
