// SPDX-License-Identifier: Apache-2.0
// Threads' time in regions: exact times, times by samples, and unknown ones.
#include "attribution/busy/regions.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::regions_test {
namespace {

using models::CycleClass;
using profile::RegionId;

constexpr std::uint64_t second = 1'000'000'000;
constexpr double tick = 4e6;  // ns that a sample stands for

class Regions : public testing::Test {
 protected:
  Regions()
      : processes_(1),
        threads_(make_threads(2)),
        spaces_(processes_, modules_),
        view_(processes_, threads_, spaces_, code_) {
    rows_ = {{RegionId{1}, {}, "outer"}, {RegionId{2}, RegionId{1}, "inner"}, {RegionId{3}, {}, "other"}};
    summaries_.resize(2);
    of_threads_.resize(2);
    waited_.resize(2);
  }
  void time(std::uint32_t thread, std::uint32_t region, std::uint64_t elapsed_ns, std::uint64_t lock_ns = 0) {
    times_.push_back({ThreadId{thread}, RegionId{region}, 1, elapsed_ns, {lock_ns, 0, 0}});
  }
  void sample(std::uint32_t thread, std::uint32_t region, std::uint64_t count, std::uint64_t in_kernel = 0) {
    const auto n = static_cast<double>(count);
    const ThreadTotal total{count, 0, n * tick, static_cast<double>(in_kernel) * tick, n * tick * tick, 0, 0};
    samples_[{thread, RegionId{region}}].add(total);
    of_threads_[thread].add(total);
    summaries_[thread].cpu_s = of_threads_[thread].ns * 1e-9;
  }
  std::vector<RegionSummary> result() {
    return region_summaries({rows_, times_, samples_, {}, of_threads_, waited_}, summaries_, {}, LoopIndex(view_, {}));
  }

  std::vector<profile::ProcessRow> processes_;
  std::vector<profile::ThreadRow> threads_;
  std::vector<profile::ModuleRow> modules_;
  AddressSpaces spaces_;
  FakeCode code_;
  ProgramView view_;
  std::vector<profile::RegionRow> rows_;
  std::vector<profile::ThreadRegionRow> times_;
  SampleDigest::InRegions samples_;
  std::vector<ThreadTotal> of_threads_;
  std::vector<ThreadSummary> summaries_;
  std::vector<std::optional<Waited>> waited_;
};

TEST_F(Regions, HoldWhatIsInsideThemAndComeBeforeIt) {
  time(0, 3, 5 * second);
  time(0, 1, 2 * second);
  time(0, 2, second);
  sample(0, 1, 100);
  sample(0, 2, 200);
  sample(0, 3, 1000);
  const auto regions = result();
  ASSERT_EQ(regions.size(), 3U);
  EXPECT_EQ(regions[0].path, "other");  // took longest
  EXPECT_EQ(regions[1].path, "outer");
  EXPECT_EQ(regions[2].path, "outer > inner");
  EXPECT_EQ(regions[2].parent, 1U);
  EXPECT_EQ(regions[2].depth, 1U);
  EXPECT_NEAR(*regions[1].cpu_s, 1.2, 1e-9);
  EXPECT_NEAR(*regions[2].cpu_s, 0.8, 1e-9);
  EXPECT_EQ(regions[1].samples, 300U);
  EXPECT_LT(regions[1].cpu_ci95.low, 1.2);
  EXPECT_GT(regions[1].cpu_ci95.high, 1.2);
}

TEST_F(Regions, AccountsAddUpToTheElapsedTime) {
  time(0, 1, 2 * second, second / 4);
  time(1, 1, second);
  sample(0, 1, 300, 75);
  sample(1, 1, 250);
  waited_ = {Waited{0.25, 0, 0, 3}, Waited{}};
  const auto region = result().at(0);
  EXPECT_NEAR(region.waits.total(), 3.0, 1e-9);
  EXPECT_NEAR(region.waits[CycleClass::lock].value(), 0.25, 1e-9);
  EXPECT_NEAR(region.waits[CycleClass::kernel].value(), 0.3, 1e-9);
  EXPECT_NEAR(region.waits[CycleClass::blocked].value(), 3.0 - 2.2 - 0.25, 1e-9);
  ASSERT_EQ(region.threads.size(), 2U);
  EXPECT_NEAR(region.threads[0].waits.total(), 2.0, 1e-9);
  EXPECT_NEAR(region.threads[0].waited->lock_s, 0.25, 1e-9);
  // By what each was not waiting: 1.75 and 1 s.
  EXPECT_NEAR(region.imbalance.value(), 1 - 1.375 / 1.75, 1e-9);
}

TEST_F(Regions, WaitsInsideCountInWhatHoldsThem) {
  time(0, 1, 2 * second);
  time(0, 2, second, second / 2);
  sample(0, 2, 125);
  waited_[0] = Waited{0.5, 0, 0, 1};
  const auto regions = result();
  EXPECT_NEAR(regions[0].waits[CycleClass::lock].value(), 0.5, 1e-9);
  EXPECT_NEAR(regions[1].waits[CycleClass::lock].value(), 0.5, 1e-9);
}

TEST_F(Regions, OfHardlyASampleNothingIsSaidButTheElapsedTime) {
  time(0, 1, 5'000'000);
  sample(0, 3, 1000);  // elsewhere
  const auto region = result().at(0);
  EXPECT_EQ(region.path, "outer");
  EXPECT_EQ(*region.cpu_s, 0);
  EXPECT_NEAR(region.cpu_ci95.high, 0.005, 1e-12) << "no more than its elapsed time";
  EXPECT_FALSE(region.waits[CycleClass::blocked]);
  EXPECT_NEAR(region.waits[CycleClass::unattributed].value(), 0.005, 1e-12);
  EXPECT_FALSE(region.waits.notes.empty());
  EXPECT_FALSE(region.imbalance);
}

TEST_F(Regions, AThreadThatWasNotSampledHasNoCpuTime) {
  time(0, 1, second);
  const auto region = result().at(0);
  EXPECT_FALSE(region.cpu_s);
  EXPECT_FALSE(region.threads[0].cpu_s);
  EXPECT_NEAR(region.waits[CycleClass::unattributed].value(), 1, 1e-9);
}

TEST_F(Regions, RowsOfWhatIsNotKnownAreLeftOut) {
  time(7, 1, second);
  time(0, 9, second);
  samples_[{9, RegionId{1}}] = {};
  const auto regions = result();
  ASSERT_EQ(regions.size(), 3U);
  for (const RegionSummary& region : regions) {
    EXPECT_TRUE(region.threads.empty());
  }
}

}  // namespace
}  // namespace crosstalk::attribution::test::regions_test
