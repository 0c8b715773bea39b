// SPDX-License-Identifier: Apache-2.0
// Values as kernels make them: the old encoding, the new one, both at once.
#include "attribution/model/data_source.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <random>

namespace crosstalk::attribution::data_source_test {
namespace {

using Level = MemoryLevel;

constexpr std::uint64_t load = PERF_MEM_S(OP, LOAD), store = PERF_MEM_S(OP, STORE);
constexpr std::uint64_t hit = PERF_MEM_S(LVL, HIT), miss = PERF_MEM_S(LVL, MISS), na = PERF_MEM_S(LVL, NA);
constexpr std::uint64_t hitm = PERF_MEM_S(SNOOP, HITM), remote = PERF_MEM_S(REMOTE, REMOTE);
constexpr std::uint64_t same_node = PERF_MEM_S(HOPS, 0), other_node = PERF_MEM_S(HOPS, 1);

struct Case {
  const char* what;
  std::uint64_t value;
  Level found;
  Level missed = Level::unknown;
  Hitm modified = Hitm::none;
  bool remote = false;
};

constexpr Case cases[] = {
    {"nothing", 0, Level::unknown},
    {"not available", PERF_MEM_S(OP, NA) | na | PERF_MEM_S(LVLNUM, NA), Level::unknown},
    {"Sandy Bridge: L1", load | hit | PERF_MEM_S(LVL, L1), Level::l1},
    {"Sandy Bridge: fill buffer", load | hit | PERF_MEM_S(LVL, LFB), Level::line_fill_buffer},
    {"Sandy Bridge: L3, modified in another core", load | hit | PERF_MEM_S(LVL, L3) | hitm, Level::l3, Level::unknown,
     Hitm::local},
    {"Ivy Bridge: a cache one hop away, modified", load | hit | PERF_MEM_S(LVL, REM_CCE1) | hitm, Level::remote_cache,
     Level::unknown, Hitm::remote, true},
    {"Ivy Bridge: two hops", load | PERF_MEM_S(LVL, REM_CCE2) | PERF_MEM_S(SNOOP, HIT), Level::remote_cache,
     Level::unknown, Hitm::none, true},
    {"memory of this node", load | hit | PERF_MEM_S(LVL, LOC_RAM) | PERF_MEM_S(SNOOP, MISS), Level::local_memory},
    {"memory of another node", load | hit | PERF_MEM_S(LVL, REM_RAM1), Level::remote_memory, Level::unknown, Hitm::none,
     true},
    {"an L3 miss of which no more is known", load | miss | PERF_MEM_S(LVL, L3), Level::unknown, Level::l3},
    {"Skylake: both encodings", load | hit | PERF_MEM_S(LVL, L2) | PERF_MEM_S(LVLNUM, L2), Level::l2},
    {"Skylake: L3 of another socket, modified",
     load | hit | PERF_MEM_S(LVL, L3) | PERF_MEM_S(LVLNUM, L3) | remote | hitm, Level::remote_cache, Level::unknown,
     Hitm::remote, true},
    {"Skylake: any cache, remote and modified", load | hit | PERF_MEM_S(LVLNUM, ANY_CACHE) | remote | hitm,
     Level::remote_cache, Level::unknown, Hitm::remote, true},
    {"Skylake: memory, remote", load | hit | PERF_MEM_S(LVLNUM, RAM) | remote, Level::remote_memory, Level::unknown,
     Hitm::none, true},
    {"numbers alone: memory", load | hit | PERF_MEM_S(LVLNUM, RAM), Level::local_memory},
    {"numbers alone: persistent memory", load | hit | PERF_MEM_S(LVLNUM, PMEM), Level::persistent_memory},
    {"numbers alone: fill buffer", load | hit | PERF_MEM_S(LVLNUM, LFB), Level::line_fill_buffer},
    {"numbers alone: CXL", load | hit | PERF_MEM_S(LVLNUM, CXL), Level::cxl},
    {"numbers alone: L2 miss buffer", load | hit | std::uint64_t{5} << PERF_MEM_LVLNUM_SHIFT, Level::l2_miss_buffer},
    {"numbers alone: memory-side cache", load | hit | std::uint64_t{6} << PERF_MEM_LVLNUM_SHIFT,
     Level::memory_side_cache},
    {"numbers alone: L0", load | hit | std::uint64_t{7} << PERF_MEM_LVLNUM_SHIFT, Level::l0},
    {"numbers alone: uncached", load | hit | std::uint64_t{8} << PERF_MEM_LVLNUM_SHIFT, Level::uncached},
    {"Zen 4: another core complex of this node, modified",
     load | hit | PERF_MEM_S(LVL, REM_CCE1) | PERF_MEM_S(LVLNUM, ANY_CACHE) | remote | same_node | hitm,
     Level::peer_cache, Level::unknown, Hitm::local},
    {"Zen 4: a core complex of another node",
     load | hit | PERF_MEM_S(LVL, REM_CCE2) | PERF_MEM_S(LVLNUM, ANY_CACHE) | remote | other_node | hitm,
     Level::remote_cache, Level::unknown, Hitm::remote, true},
    {"Zen 2: L3 or another core complex", load | hit | PERF_MEM_S(LVL, L3) | PERF_MEM_S(LVL, REM_CCE1) | hitm,
     Level::l3, Level::unknown, Hitm::local},
    {"Zen: memory of another node",
     load | hit | PERF_MEM_S(LVL, REM_RAM1) | PERF_MEM_S(LVLNUM, RAM) | remote | same_node, Level::remote_memory,
     Level::unknown, Hitm::none, true},
    {"POWER: L2 of another core", load | hit | PERF_MEM_S(LVL, L2) | PERF_MEM_S(LVLNUM, L2) | remote | same_node,
     Level::peer_cache},
    {"a store that hit", store | hit | PERF_MEM_S(LVL, L1), Level::l1},
    {"a store that missed", store | miss | PERF_MEM_S(LVL, L1), Level::unknown, Level::l1},
    {"I/O", load | hit | PERF_MEM_S(LVL, IO), Level::io},
    {"uncached", load | hit | PERF_MEM_S(LVL, UNC), Level::uncached},
};

TEST(DataSource, LevelsOfBothEncodings) {
  for (const Case& each : cases) {
    const DataSource source = decode_data_source(each.value);
    EXPECT_EQ(source.found, each.found) << each.what << ": " << memory_level_name(source.found);
    EXPECT_EQ(source.missed, each.missed) << each.what;
    EXPECT_EQ(source.hitm(), each.modified) << each.what;
    EXPECT_EQ(source.remote, each.remote) << each.what;
    EXPECT_EQ(source.load, (each.value & load) != 0) << each.what;
    EXPECT_EQ(source.store, (each.value & store) != 0) << each.what;
  }
}

TEST(DataSource, Snoops) {
  EXPECT_EQ(decode_data_source(load).snoop, Snoop::unknown);
  EXPECT_EQ(decode_data_source(PERF_MEM_S(SNOOP, NA)).snoop, Snoop::unknown);
  EXPECT_EQ(decode_data_source(PERF_MEM_S(SNOOP, NONE)).snoop, Snoop::none);
  EXPECT_EQ(decode_data_source(PERF_MEM_S(SNOOP, HIT)).snoop, Snoop::hit);
  EXPECT_EQ(decode_data_source(PERF_MEM_S(SNOOP, MISS)).snoop, Snoop::miss);
  EXPECT_EQ(decode_data_source(hitm | PERF_MEM_S(SNOOP, HIT)).snoop, Snoop::hitm);
}

TEST(DataSource, Translations) {
  const auto of = [](std::uint64_t tlb) { return decode_data_source(tlb << PERF_MEM_TLB_SHIFT).translation; };
  EXPECT_EQ(of(0), Translation::unknown);
  EXPECT_EQ(of(PERF_MEM_TLB_NA), Translation::unknown);
  EXPECT_EQ(of(PERF_MEM_TLB_HIT | PERF_MEM_TLB_L1), Translation::l1);
  EXPECT_EQ(of(PERF_MEM_TLB_HIT | PERF_MEM_TLB_L2), Translation::l2);
  EXPECT_EQ(of(PERF_MEM_TLB_HIT | PERF_MEM_TLB_L1 | PERF_MEM_TLB_L2), Translation::l1_or_l2);
  EXPECT_EQ(of(PERF_MEM_TLB_MISS | PERF_MEM_TLB_L2), Translation::walk);
  EXPECT_EQ(of(PERF_MEM_TLB_HIT | PERF_MEM_TLB_WK), Translation::walk);
  EXPECT_EQ(of(PERF_MEM_TLB_MISS | PERF_MEM_TLB_L1), Translation::unknown);
  EXPECT_EQ(of(PERF_MEM_TLB_OS | PERF_MEM_TLB_MISS), Translation::fault);
}

TEST(DataSource, LocksAndBlocks) {
  EXPECT_TRUE(decode_data_source(PERF_MEM_S(LOCK, LOCKED)).locked);
  EXPECT_TRUE(decode_data_source(PERF_MEM_S(LOCK, LOCKED)).lock_known);
  EXPECT_TRUE(decode_data_source(load).lock_known) << "not locked";
  EXPECT_FALSE(decode_data_source(load | PERF_MEM_S(LOCK, NA)).lock_known);
  EXPECT_FALSE(decode_data_source(0).lock_known);
  EXPECT_TRUE(decode_data_source(PERF_MEM_S(BLK, DATA)).blocked_data);
  EXPECT_TRUE(decode_data_source(PERF_MEM_S(BLK, ADDR)).blocked_address);
  EXPECT_FALSE(decode_data_source(PERF_MEM_S(BLK, NA)).blocked_address);
}

TEST(DataSource, AnyValueHasNames) {
  std::mt19937_64 random(1);  // NOLINT: the same values each time
  for (int i = 0; i < 100'000; ++i) {
    const DataSource source = decode_data_source(random());
    ASSERT_NE(memory_level_name(source.found), nullptr);
    ASSERT_NE(memory_level_name(source.missed), nullptr);
    ASSERT_NE(snoop_name(source.snoop), nullptr);
    ASSERT_NE(translation_name(source.translation), nullptr);
    ASSERT_TRUE(source.found == Level::unknown || source.missed == Level::unknown);
  }
  EXPECT_STREQ(memory_level_name(Level::uncached), "uncached");
  EXPECT_STREQ(memory_level_name(Level::remote_cache), "remote_cache");
  EXPECT_STREQ(translation_name(Translation::fault), "fault");
}

}  // namespace
}  // namespace crosstalk::attribution::data_source_test
