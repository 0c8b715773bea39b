// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/return_balance.h"

#include <gtest/gtest.h>

#include <vector>

namespace crosstalk::attribution::test::return_balance_test {
namespace {

constexpr std::uint64_t load = 0x401000, store = 0x401010, other = 0x401020;

/// A watch of thread 0, whose sample was by `sampled`, and whose thread came back by `returned`.
struct Watched {
  explicit Watched(std::uint64_t sampled, std::uint64_t returned = 0,
                   profile::WeightUnit unit = profile::WeightUnit::accesses) {
    row.thread = ThreadId{0};
    row.sample_access_ip = sampled;
    evidence.thread = row.thread;
    evidence.weight = 1000;
    evidence.unit = unit;
    AccessPoint partner;
    partner.thread = ThreadId{1};
    partner.instruction = other;
    accesses.push_back(partner);
    if (returned != 0) {
      AccessPoint own;
      own.thread = row.thread;
      own.instruction = returned;
      accesses.push_back(own);
    }
  }
  const Evidence& seen() {
    evidence.watch = &row;
    evidence.accesses = accesses;
    return evidence;
  }
  profile::WatchRow row;
  std::vector<AccessPoint> accesses;
  Evidence evidence;
};

struct Case {
  std::uint64_t sampled, returned;
  int times;
  double expansion = 1;
};

ReturnBalance balance_of(const std::vector<Case>& cases) {
  ReturnBalance balance;
  for (const Case& c : cases) {
    for (int i = 0; i < c.times; ++i) {
      balance.add(Watched(c.sampled, c.returned).seen(), c.expansion);
    }
  }
  balance.finish();
  return balance;
}

double part_of(const ReturnBalance& balance, std::uint64_t instruction) {
  return balance.part(Watched(instruction).seen());
}

TEST(ReturnBalance, OfWatchesThatBeginWithTheirAccessesCountsAll) {
  const ReturnBalance balance = balance_of({{load, store, 50}, {store, load, 50}});
  EXPECT_EQ(part_of(balance, load), 1);
  EXPECT_EQ(part_of(balance, store), 1);
}

TEST(ReturnBalance, OfLateWatchesCountsTheBeginsOfVisits) {
  const ReturnBalance balance = balance_of({{load, load, 50}, {store, load, 50}});
  EXPECT_EQ(part_of(balance, load), 1);
  EXPECT_EQ(part_of(balance, store), 0);
}

TEST(ReturnBalance, CountsAllWhereVisitsAreOfOneAccessEach) {
  const ReturnBalance balance =
      balance_of({{load, load, 50}, {load, store, 50}, {store, load, 50}, {store, store, 50}});
  EXPECT_EQ(part_of(balance, load), 1);
  EXPECT_EQ(part_of(balance, store), 1);
}

TEST(ReturnBalance, CountsThePartThatBeginsVisits) {
  const ReturnBalance balance =
      balance_of({{load, load, 60}, {store, load, 60}, {load, store, 20}, {store, store, 20}});
  EXPECT_EQ(part_of(balance, load), 1);
  EXPECT_EQ(part_of(balance, store), 0.5);
}

TEST(ReturnBalance, IsNotJudgedByChance) {
  const ReturnBalance balance = balance_of({{load, load, 5}, {store, load, 5}});
  EXPECT_EQ(part_of(balance, store), 1);
}

TEST(ReturnBalance, WeighsWatchesByTheSamplesThatTheyStandFor) {
  const ReturnBalance balance = balance_of({{load, load, 200, 0.5}, {load, store, 400, 0.5}, {store, load, 100, 2}});
  EXPECT_EQ(part_of(balance, load), 1);
  EXPECT_EQ(part_of(balance, store), 1);
}

TEST(ReturnBalance, LeavesOutReturnsToInstructionsThatAreNeverSampled) {
  const ReturnBalance balance = balance_of({{load, load + 2, 50}, {store, store + 2, 50}});
  EXPECT_EQ(part_of(balance, load), 1);
  EXPECT_EQ(part_of(balance, store), 1);
}

TEST(ReturnBalance, IsOfCountingSamplesOnly) {
  ReturnBalance balance;
  for (int i = 0; i < 50; ++i) {
    balance.add(Watched(load, load).seen(), 1);
    balance.add(Watched(store, load).seen(), 1);
  }
  balance.finish();
  EXPECT_EQ(part_of(balance, store), 0);
  EXPECT_EQ(balance.part(Watched(store, load, profile::WeightUnit::ns).seen()), 1);
}

}  // namespace
}  // namespace crosstalk::attribution::test::return_balance_test
