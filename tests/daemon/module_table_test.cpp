// SPDX-License-Identifier: Apache-2.0
#include "daemon/module_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace crosstalk::daemon::module_table_test {
namespace {

profile::ModuleRow module(std::uint32_t process, std::uint64_t begin, const std::string& path) {
  profile::ModuleRow row;
  row.process = ProcessId{process};
  row.begin = begin;
  row.path = path;
  return row;
}

TEST(ModuleTable, UnloadingFindsTheLatestThatIsLoaded) {
  ModuleTable table;
  table.load(module(0, 0x1000, "a"));
  EXPECT_EQ(table.unload(ProcessId{0}, 0x1000, 5, 0)->path, "a");
  table.load(module(0, 0x1000, "b"));
  EXPECT_EQ(table.unload(ProcessId{0}, 0x1000, 6, 0)->path, "b");
  EXPECT_FALSE(table.unload(ProcessId{0}, 0x1000, 7, 0));
  EXPECT_FALSE(table.unload(ProcessId{0}, 0x2000, 7, 0));
  EXPECT_FALSE(table.unload(ProcessId{1}, 0x1000, 7, 0));
}

TEST(ModuleTable, AChildHasWhatItsParentHadEvenWhenThatIsForgotten) {
  ModuleTable table;
  table.inherit(ProcessId{1}, ProcessId{0}, 0);
  table.load(module(0, 0x1000, "a"));  // of which we hear late
  table.forget(ProcessId{0});
  const auto row = table.unload(ProcessId{1}, 0x1000, 9, 3);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->process, ProcessId{1});
  EXPECT_EQ(row->loaded_ns, 3U);
  EXPECT_EQ(row->unloaded_ns, 9U);
  table.forget(ProcessId{1});
  EXPECT_EQ(table.rows(), 0U);
}

std::vector<std::string> paths(const std::vector<profile::ModuleRow>& rows) {
  std::vector<std::string> paths;
  for (const profile::ModuleRow& row : rows) {
    EXPECT_EQ(row.unloaded_ns, 0U);
    paths.push_back(row.path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(ModuleTable, ThePresentModulesAreThoseThatAProcessHasItselfOrByItsForebears) {
  ModuleTable table;
  const auto load = [&](std::uint32_t process, std::uint64_t begin, const std::string& path, std::uint64_t time_ns) {
    profile::ModuleRow row = module(process, begin, path);
    row.loaded_ns = time_ns;
    table.load(row);
  };
  load(0, 0x1000, "kept", 10);
  load(0, 0x2000, "unloaded by the parent later", 10);
  load(0, 0x3000, "unloaded before", 10);
  load(0, 0x4000, "replaced by the child", 10);
  load(0, 0x5000, "unloaded by the child", 10);
  EXPECT_TRUE(table.unload(ProcessId{0}, 0x3000, 15, 0));
  table.inherit(ProcessId{1}, ProcessId{0}, 20);
  EXPECT_TRUE(table.unload(ProcessId{0}, 0x2000, 25, 0));
  load(0, 0x6000, "loaded by the parent later", 25);
  load(1, 0x4000, "own", 30);
  EXPECT_TRUE(table.unload(ProcessId{1}, 0x5000, 30, 20));
  const std::vector<std::string> expected = {"kept", "own", "unloaded by the parent later"};
  EXPECT_EQ(paths(table.present(ProcessId{1})), expected);
  table.inherit(ProcessId{2}, ProcessId{1}, 40);
  load(1, 0x7000, "too late", 45);
  EXPECT_EQ(paths(table.present(ProcessId{2})), expected);
  EXPECT_EQ(table.present(ProcessId{2}).at(0).process, ProcessId{2});
  EXPECT_EQ(paths(table.present(ProcessId{0})),
            (std::vector<std::string>{"kept", "loaded by the parent later", "replaced by the child",
                                      "unloaded by the child"}));
  EXPECT_TRUE(table.present(ProcessId{9}).empty());
}

TEST(ModuleTable, ALineOfDaemonsDoesNotKeepItsForefathers) {
  ModuleTable table;
  table.load(module(0, 0x1000, "first"));
  for (std::uint32_t i = 1; i < 10'000; ++i) {
    table.inherit(ProcessId{i}, ProcessId{i - 1}, 0);
    table.load(module(i, 0x1000 + std::uint64_t{i % 2} * 0x1000, "own"));
    table.forget(ProcessId{i - 1});
  }
  EXPECT_LT(table.rows(), 10U);
  EXPECT_EQ(table.unload(ProcessId{9'999}, 0x2000, 9, 3)->path, "own");
}

TEST(ModuleTable, PluginsThatComeAndGoAreNotRememberedForEver) {
  ModuleTable table;
  table.load(module(0, 0x10, "program"));
  for (std::uint64_t i = 1; i < 20'000; ++i) {
    table.load(module(0, 0x1000 * i, "plugin"));
    ASSERT_TRUE(table.unload(ProcessId{0}, 0x1000 * i, i, 0));
  }
  EXPECT_LT(table.rows(), 5'000U);
  EXPECT_EQ(table.unload(ProcessId{0}, 0x10, 5, 0)->path, "program");
}

TEST(ModuleTable, SumsTheTimeOfTheCollectorsSamples) {
  ModuleTable table;
  profile::ModuleRow row;
  row.process = ProcessId{0};
  table.sampled(ProcessId{0}, 0x2000, 1);  // before its modules are known
  table.sampled(ProcessId{0}, 0x4000, 10);
  EXPECT_EQ(table.collector_ns(), 0U);
  row.path = "/usr/lib/crosstalk/libcrosstalk.so";
  row.begin = 0x1000, row.end = 0x3000;
  table.load(row);
  EXPECT_EQ(table.collector_ns(), 1U);
  row.path = "/usr/lib/libc.so.6";
  row.begin = 0x4000, row.end = 0x5000;
  table.load(row);
  table.sampled(ProcessId{1}, 0x1000, 100);
  table.inherit(ProcessId{1}, ProcessId{0}, 0);
  EXPECT_EQ(table.collector_ns(), 101U);
  table.sampled(ProcessId{1}, 0x2fff, 1000);
  table.sampled(ProcessId{1}, 0x3000, 10'000);
  table.forget(ProcessId{1});
  table.sampled(ProcessId{1}, 0x2000, 100'000);
  EXPECT_EQ(table.collector_ns(), 1101U);
}

}  // namespace
}  // namespace crosstalk::daemon::module_table_test
