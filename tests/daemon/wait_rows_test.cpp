// SPDX-License-Identifier: Apache-2.0
// Reads a thread's table of waits, also while it is written to and if it holds nonsense.
#include "daemon/wait_rows.h"

#include <gtest/gtest.h>

#include <memory>

namespace crosstalk::daemon::wait_rows_test {
namespace {

using profile::ThreadWaitRow;
using profile::ThreadWaits;
using profile::WaitKind;

class WaitRows : public ::testing::Test {
 protected:
  WaitRows() { table_->measured = 1; }
  void set(std::uint32_t index, ThreadWaits::Place place, std::uint64_t waited_ns, std::uint64_t count) {
    table_->sum[index].place = place;
    table_->sum[index].waited_ns = waited_ns;
    table_->sum[index].count = count;
  }
  static void expect(const ThreadWaitRow& row, WaitKind kind, std::uint64_t site, std::uint64_t waited_ns,
                     std::uint64_t count) {
    EXPECT_EQ(row.kind, kind);
    EXPECT_EQ(row.site, site);
    EXPECT_EQ(row.waited_ns, waited_ns);
    EXPECT_EQ(row.count, count);
  }
  std::unique_ptr<ThreadWaits> table_ = std::make_unique<ThreadWaits>();
};

TEST_F(WaitRows, OfAThreadWhoseWaitsAreNotMeasuredThereAreNone) {
  table_->measured = 0;
  set(0, ThreadWaits::place_of(WaitKind::mutex, 0x401000), 5, 1);
  EXPECT_TRUE(wait_rows(*table_, 0).empty());
}

TEST_F(WaitRows, OneThatNeverWaitedHasItsSum) {
  const auto rows = wait_rows(*table_, 1000);
  ASSERT_EQ(rows.size(), 1U);
  expect(rows[0], WaitKind::all, 0, 0, 0);
}

TEST_F(WaitRows, PlacesAndWhatFoundNoRoom) {
  set(0, ThreadWaits::place_of(WaitKind::mutex, 0x7fff00401000), 500, 2);
  set(ThreadWaits::places, ThreadWaits::place_of(WaitKind::mutex, 0), 70, 1);
  const auto rows = wait_rows(*table_, 0);
  ASSERT_EQ(rows.size(), 3U);
  expect(rows[0], WaitKind::all, 0, 570, 3);
  expect(rows[1], WaitKind::mutex, 0x7fff00401000, 500, 2);
  expect(rows[2], WaitKind::mutex, 0, 70, 1);
}

TEST_F(WaitRows, AWaitThatGoesOnCountsUpToTheEnd) {
  set(0, ThreadWaits::place_of(WaitKind::barrier, 0x401000), 500, 2);
  table_->place = ThreadWaits::place_of(WaitKind::barrier, 0x401000);
  table_->since_ns = 10'000;
  EXPECT_EQ(wait_rows(*table_, 0)[1].waited_ns, 500U);
  EXPECT_EQ(wait_rows(*table_, 9'000)[1].waited_ns, 500U);  // it began later
  const auto rows = wait_rows(*table_, 10'100);
  ASSERT_EQ(rows.size(), 2U);
  expect(rows[1], WaitKind::barrier, 0x401000, 600, 3);
  table_->place = ThreadWaits::place_of(WaitKind::condition, 0x402000);
  EXPECT_EQ(wait_rows(*table_, 10'100).size(), 3U);
}

TEST_F(WaitRows, KindsThatDoNotExistAreLeftOut) {
  set(0, std::uint64_t{200} << ThreadWaits::kind_shift | 0x401000, 500, 2);
  set(1, 0x401000, 500, 2);
  const auto rows = wait_rows(*table_, 0);
  ASSERT_EQ(rows.size(), 1U);
  expect(rows[0], WaitKind::all, 0, 0, 0);
}

}  // namespace
}  // namespace crosstalk::daemon::wait_rows_test
