// SPDX-License-Identifier: Apache-2.0
// Regions of threads become those of the session; nonsense in a target's tables does no harm.
#include "daemon/region_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "tests/daemon/collected_rows.h"

namespace crosstalk::daemon::region_table_test {
namespace {

using profile::RegionId;
using profile::ThreadRegions;

class Regions : public ::testing::Test {
 protected:
  std::uint32_t name(const char* text) {
    profile::RegionName& place = arena_->region_names[names_++];
    std::strncpy(place.text, text, sizeof place.text);  // NOLINT: it may lack its NUL
    place.state = static_cast<std::uint32_t>(profile::RegionNameState::ready);
    return names_;
  }
  void node(std::uint32_t number, std::uint32_t parent, std::uint32_t name, std::uint64_t entries,
            std::uint64_t elapsed_ns) {
    ThreadRegions::Node& node = table_->node[number - 1];
    node.key = ThreadRegions::key_of(parent, name);
    node.entries = entries;
    node.elapsed_ns = elapsed_ns;
  }
  [[nodiscard]] RegionsSeen seen(std::uint64_t now_ns = 0) const { return regions_seen(*table_, *arena_, now_ns); }

  std::unique_ptr<profile::ArenaHeader> arena_ = std::make_unique<profile::ArenaHeader>();
  std::unique_ptr<ThreadRegions> table_ = std::make_unique<ThreadRegions>();
  std::uint32_t names_ = 0;
  CollectedRows sink_;
  RegionTable regions_{sink_};
};

TEST_F(Regions, AreTheSameInAllThreadsByTheirNames) {
  const std::uint32_t outer = name("outer");
  const std::uint32_t inner = name("inner");
  node(1, 0, outer, 1, 100);
  node(2, 1, inner, 5, 50);
  regions_.put(0, ThreadId{0}, seen());
  std::swap(arena_->region_names[0].text, arena_->region_names[1].text);  // another thread meets them in another order
  node(1, 0, inner, 2, 20);
  node(2, 1, outer, 7, 10);
  regions_.put(1, ThreadId{1}, seen());
  ASSERT_EQ(sink_.regions.size(), 2U);
  EXPECT_EQ(sink_.regions[0].name, "outer");
  EXPECT_EQ(sink_.regions[1].name, "inner");
  EXPECT_EQ(sink_.regions[1].parent, sink_.regions[0].id);
  ASSERT_EQ(sink_.thread_regions.size(), 4U);
  EXPECT_EQ(sink_.thread_regions[2].thread, ThreadId{1});
  EXPECT_EQ(sink_.thread_regions[2].entries, 2U);
  EXPECT_EQ(regions_.id_of(1, 2), sink_.regions[1].id);
  EXPECT_EQ(regions_.id_of(1, 3), RegionId{});
  EXPECT_EQ(regions_.id_of(2, 1), RegionId{});
}

TEST_F(Regions, ANameThatWasEnteredTwiceIsOneRegion) {
  node(1, 0, name("twice"), 1, 100);
  node(2, 0, name("twice"), 2, 200);
  regions_.put(0, ThreadId{0}, seen());
  ASSERT_EQ(sink_.regions.size(), 1U);
  ASSERT_EQ(sink_.thread_regions.size(), 1U);
  EXPECT_EQ(sink_.thread_regions[0].entries, 3U);
  EXPECT_EQ(sink_.thread_regions[0].elapsed_ns, 300U);
}

TEST_F(Regions, WhatIsOpenCountsUpToNow) {
  node(1, 0, name("open"), 2, 100);
  table_->depth = 2;
  table_->open[0].node = 1;
  table_->open[0].begin_ns = 1000;
  table_->open[1].node = 0;  // there was no room for it
  EXPECT_EQ(seen(1500).nodes[0].elapsed_ns, 600U);
  EXPECT_EQ(seen(1500).nodes[0].entries, 3U);
  EXPECT_EQ(seen(900).nodes[0].elapsed_ns, 100U);  // it began later than the recorder looked
}

TEST_F(Regions, SumsThatHaveNotChangedAreNotPutAgain) {
  node(1, 0, name("a"), 1, 100);
  regions_.put(0, ThreadId{0}, seen());
  regions_.put(0, ThreadId{0}, seen());
  EXPECT_EQ(sink_.thread_regions.size(), 1U);
  regions_.put_everything(sink_);  // earlier rows may be lost
  regions_.put(0, ThreadId{0}, seen());
  EXPECT_EQ(sink_.regions.size(), 2U);
  EXPECT_EQ(sink_.thread_regions.size(), 2U);
}

TEST_F(Regions, ASlotsNextThreadHasRegionsOfItsOwn) {
  node(1, 0, name("first"), 1, 100);
  table_->unmatched = 3;
  regions_.put(0, ThreadId{0}, seen());
  regions_.close(0);
  ASSERT_EQ(sink_.messages.size(), 1U);
  EXPECT_EQ(sink_.messages[0].code, "unmatched_regions");
  EXPECT_EQ(regions_.id_of(0, 1), RegionId{});
  node(1, 0, name("second"), 1, 100);
  regions_.put(0, ThreadId{1}, seen());
  EXPECT_EQ(sink_.regions.back().name, "second");
}

TEST_F(Regions, NonsenseIsLeftOut) {
  const std::uint32_t good = name("good");
  node(1, 0, good, 1, 100);
  for (const ThreadRegions::Key bad :
       {ThreadRegions::key_of(2, good), ThreadRegions::key_of(3, good), ThreadRegions::key_of(1, good + 1),
        ThreadRegions::key_of(1, 60000), ThreadRegions::key_of(60000, good), ThreadRegions::key_of(1, 0)}) {
    table_->node[1].key = bad;
    node(3, 0, good, 1, 100);  // behind it
    EXPECT_EQ(seen().nodes.size(), 1U) << bad;
  }
  table_->depth = UINT32_MAX;
  for (auto& open : table_->open) {
    open.node = 77;
  }
  EXPECT_EQ(seen(5).nodes[0].entries, 1U);
}

TEST_F(Regions, NamesAreOnePrintableLine) {
  arena_->region_names[0].state = static_cast<std::uint32_t>(profile::RegionNameState::ready);
  std::memset(arena_->region_names[0].text, '\n', sizeof arena_->region_names[0].text);
  node(1, 0, 1, 1, 100);
  EXPECT_EQ(seen().nodes[0].name.find('\n'), std::string::npos);
  arena_->region_names[0].text[0] = 0;
  EXPECT_EQ(seen().nodes[0].name, "(unnamed)");
  arena_->region_names[0].state = static_cast<std::uint32_t>(profile::RegionNameState::claimed);
  EXPECT_TRUE(seen().nodes.empty());
}

}  // namespace
}  // namespace crosstalk::daemon::region_table_test
