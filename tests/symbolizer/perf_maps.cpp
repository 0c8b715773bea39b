// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "symbolizer/elf/perf_map.h"
#include "symbolizer/symbolizer.h"

namespace crosstalk::symbolizer::perf_maps_test {
namespace {

TEST(PerfMaps, NamesByRange) {
  const PerfMap map("1000 20 first function\n0x2000 0x10 second\r\nbad line\n3000 0 empty\n4000 zz x\n5000 8\n");
  EXPECT_EQ(map.size(), 2U);
  EXPECT_EQ(map.at(0x1000), "first function");
  EXPECT_EQ(map.at(0x101f), "first function");
  EXPECT_FALSE(map.at(0x1020));
  EXPECT_EQ(map.at(0x200f), "second");
  EXPECT_FALSE(map.at(0));
}

TEST(PerfMaps, LaterSymbolsReplaceEarlier) {
  const PerfMap map("1000 40 old\n1000 20 new\n1030 8 inner\n");
  EXPECT_EQ(map.at(0x1010), "new");
  EXPECT_FALSE(map.at(0x1020));
  EXPECT_EQ(map.at(0x1031), "inner");
}

TEST(PerfMaps, ARegionHoldsWhatNoneOfItsManyStubsHolds) {
  std::string text = "10000000000 10000 Interpreter\n";
  for (int i = 0; i < 1000; ++i) {
    char line[64];
    std::snprintf(line, sizeof line, "%llx 10 stub_%d\n", 0x10000000100ULL + 32ULL * i, i);
    text += line;
  }
  const PerfMap map(text);
  EXPECT_EQ(map.size(), 1001U);
  EXPECT_EQ(map.at(0x10000000008), "Interpreter");
  EXPECT_EQ(map.at(0x10000000128), "stub_1");
  EXPECT_EQ(map.at(0x10000000130), "Interpreter");
  EXPECT_EQ(map.at(0x1000000ffff), "Interpreter");
  EXPECT_FALSE(map.at(0x10000010000));
}

TEST(PerfMaps, WhatReusesPartOfAFunctionTakesItsPlace) {
  const PerfMap over("4000 40 freed\n3ff0 100 live\n");
  EXPECT_EQ(over.at(0x4010), "live");
  EXPECT_EQ(over.size(), 1U);
  const PerfMap across("4000 40 freed\n4020 40 live\n");
  EXPECT_FALSE(across.at(0x4010));
  EXPECT_EQ(across.at(0x4030), "live");
  const PerfMap within("4000 1000 region\n4100 100 freed\n4180 100 live\n");
  EXPECT_EQ(within.at(0x4110), "region");
  EXPECT_EQ(within.at(0x4190), "live");
  EXPECT_EQ(within.at(0x4290), "region");
}

TEST(PerfMaps, ReadUnderSysroot) {
  const std::string root = testing::TempDir() + "/perf_map_root";
  std::filesystem::create_directories(root + "/tmp");
  std::ofstream(root + "/tmp/perf-4000001.map") << "7f0000000000 100 LazyCompile:~main\n";
  Options options;
  options.sysroot = root;
  Symbolizer symbols(options);
  symbols.add_jit_symbols(4000001);
  symbols.add_jit_symbols(4000002);
  ASSERT_TRUE(symbols.jit_frame(4000001, 0x7f0000000010, 0));
  EXPECT_EQ(symbols.jit_frame(4000001, 0x7f0000000010, 0)->function, "LazyCompile:~main");
  EXPECT_FALSE(symbols.jit_frame(4000001, 0x7f0000000100, 0));
  EXPECT_FALSE(symbols.jit_frame(4000002, 0x7f0000000010, 0));
}

}  // namespace
}  // namespace crosstalk::symbolizer::perf_maps_test
