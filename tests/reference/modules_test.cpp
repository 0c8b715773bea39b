// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/modules.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/reference/module_map.h"

namespace crosstalk::reference::modules_test {
namespace {

constexpr const char* maps =
    "4000000000-4000001000 r--p 00000000 08:01 11                         /opt/a program\n"
    "4000001000-4000003000 r-xp 00001000 08:01 11                         /opt/a program\n"
    "4000003000-4000004000 rw-p 00000000 00:00 0 \n"
    "4000005000-4000006000 r-xp 00002000 08:01 12                         /lib/other.so\n"
    "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                      [stack]\n";

TEST(ModuleTable, FindsFilesAndOffsets) {
  ModuleTable table;
  std::istringstream text(maps);
  table.read(text);
  EXPECT_EQ(table.files(), (std::vector<std::string>{"/opt/a program", "/lib/other.so"}));
  const auto place = table.find(0x4000001234);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->file, 0U);
  EXPECT_EQ(place->offset, 0x1234U);
  EXPECT_EQ(table.find(0x4000005010)->offset, 0x2010U);
  EXPECT_FALSE(table.find(0x4000003000)) << "no file's";
  EXPECT_FALSE(table.find(0x7ffc00000010)) << "no file's";
  EXPECT_FALSE(table.find(0x3fffffffff));
}

TEST(ModuleTable, ReadingTwiceChangesNothing) {
  ModuleTable table;
  for (int times = 0; times < 2; ++times) {
    std::istringstream text(maps);
    table.read(text);
  }
  EXPECT_EQ(table.history().size(), 3U);
}

TEST(ModuleTable, AnotherFileTakesAPlace) {
  ModuleTable table;
  std::istringstream first(maps), second("4000005000-4000006000 r-xp 00000000 08:01 13 /lib/third.so\n");
  table.read(first);
  table.read(second);
  EXPECT_EQ(table.files()[table.find(0x4000005000)->file], "/lib/third.so");
  table.forget(0x4000005800, 0x4000005900);
  EXPECT_FALSE(table.find(0x4000005000));
  EXPECT_EQ(table.history().size(), 4U) << "what was there is remembered";
}

// A program as linkers lay it out: the page at offset 0x2000 belongs to both parts, at two addresses.
const std::vector<LoadedPart> parts = {{0x0, 0x2d00, 0x0, 0x2d00}, {0x3d00, 0x900, 0x2d00, 0x400}};
const std::vector<Segment> segments = {{0, 0x10000, 0x13000, 0x0}, {0, 0x13000, 0x14000, 0x2000}};

TEST(ModuleMap, OffsetsInFiles) {
  const ModuleMap map({parts}, segments);
  EXPECT_EQ(map.of_offset(0, 0x123), 0x123U);
  EXPECT_EQ(map.of_offset(0, 0x2d10), 0x3d10U);
  EXPECT_EQ(map.of_offset(0, 0x3100), std::nullopt);
  EXPECT_EQ(map.of_offset(1, 0), std::nullopt);
}

TEST(ModuleMap, RunTimeAddressesIncludingZeroedData) {
  const ModuleMap map({parts}, segments);
  EXPECT_EQ(map.of_address(0x10123)->address, 0x123U);
  EXPECT_EQ(map.of_address(0x13d10)->address, 0x3d10U);
  EXPECT_EQ(map.of_address(0x145ff)->address, 0x45ffU) << "behind the file's bytes";
  EXPECT_FALSE(map.of_address(0x14600));
  EXPECT_FALSE(map.of_address(0xffff));
}

TEST(ModuleMap, TheLaterOfTwoModulesAtOnePlace) {
  std::vector<Segment> both = segments;
  both.push_back({1, 0x10000, 0x11000, 0x0});
  const ModuleMap map({parts, {{0x0, 0x1000, 0x0, 0x1000}}}, both);
  EXPECT_EQ(map.of_address(0x10010)->file, 1U);
  EXPECT_EQ(map.of_address(0x12010)->file, 0U);
}

TEST(ModuleMap, ReadsThePartsOfThisProgram) {
  const auto own = loaded_parts("/proc/self/exe");
  ASSERT_GE(own.size(), 2U);
  EXPECT_EQ(own.front().offset, 0U);
  EXPECT_TRUE(loaded_parts("/proc/self/maps").empty());
}

}  // namespace
}  // namespace crosstalk::reference::modules_test
