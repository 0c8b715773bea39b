// SPDX-License-Identifier: Apache-2.0
#include "attribution/timeline/address_space.h"

#include <gtest/gtest.h>

#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::address_space_test {
namespace {

std::vector<profile::ProcessRow> processes(std::uint32_t count) {
  std::vector<profile::ProcessRow> rows(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    rows[i].id = ProcessId{i};
  }
  return rows;
}

TEST(AddressSpaces, FindsTheModuleAndItsOwnAddress) {
  const std::vector<profile::ModuleRow> modules = {module_row("/bin/a", 0x1000, 0x2000, 0x1000),
                                                   module_row("/lib/b.so", 0x5000, 0x6000, 0x4000)};
  const AddressSpaces spaces(processes(1), modules);
  EXPECT_EQ(spaces.find({ProcessId{0}, 5}, 0x1234), (ModulePlace{0, 0x234}));
  EXPECT_EQ(spaces.find({ProcessId{0}, 5}, 0x5fff), (ModulePlace{1, 0x1fff}));
  EXPECT_FALSE(spaces.find({ProcessId{0}, 5}, 0x2000));
  EXPECT_FALSE(spaces.find({ProcessId{0}, 5}, 0));
  EXPECT_FALSE(spaces.find({ProcessId{7}, 5}, 0x1234));
}

TEST(AddressSpaces, TheFileIsAskedWhereWhatWasMappedLies) {
  auto module = module_row("/lib/a.so", 0x7f0000001000, 0x7f0000003000, 0x7f0000000000);
  module.file_offset = 0x1000;
  AddressSpaces spaces(processes(1), std::vector{module});
  EXPECT_EQ(spaces.find({ProcessId{0}, 5}, 0x7f0000001234), (ModulePlace{0, 0x1234}));  // its place in the file
  int asked = 0;
  spaces.ask([&](std::uint32_t file, std::uint64_t offset) -> std::optional<std::uint64_t> {
    ++asked;
    return file == 0 && offset == 0x1000 ? std::optional<std::uint64_t>(0x2000) : std::nullopt;
  });
  EXPECT_EQ(spaces.find({ProcessId{0}, 5}, 0x7f0000001234), (ModulePlace{0, 0x2234}));
  EXPECT_EQ(spaces.find({ProcessId{0}, 5}, 0x7f0000002000), (ModulePlace{0, 0x3000}));
  EXPECT_EQ(spaces.all(ProcessId{0}).at(0).bias, 0x7f0000001000U - 0x2000U);
  EXPECT_EQ(asked, 1);
}

TEST(AddressSpaces, TimeDecidesBetweenModulesAtOneAddress) {
  auto first = module_row("/lib/first.so", 0x1000, 0x3000, 0);
  first.loaded_ns = 10;
  first.unloaded_ns = 20;
  auto second = module_row("/lib/second.so", 0x2000, 0x4000, 0);
  second.loaded_ns = 30;
  const AddressSpaces spaces(processes(1), std::vector{first, second});
  const auto file = [&](std::uint64_t time) {
    const auto place = spaces.find({ProcessId{0}, time}, 0x2800);
    return place ? spaces.files()[place->file].path : "none";
  };
  EXPECT_EQ(file(15), "/lib/first.so");
  EXPECT_EQ(file(35), "/lib/second.so");
  EXPECT_EQ(file(5), "/lib/first.so");    // just before its record
  EXPECT_EQ(file(25), "/lib/second.so");  // between the two
  EXPECT_FALSE(spaces.find({ProcessId{0}, 25}, 0x1800));
  const auto mapped = [&](std::uint64_t time) {
    std::string paths;
    for (const MappedModule& module : spaces.mapped({ProcessId{0}, time})) {
      paths += spaces.files()[module.file].path;
    }
    return paths;
  };
  EXPECT_EQ(mapped(5), "/lib/first.so") << "stacks are unwound by what find() finds";
  EXPECT_EQ(mapped(15), "/lib/first.so");
  EXPECT_EQ(mapped(25), "/lib/second.so");
  EXPECT_EQ(mapped(35), "/lib/second.so");
}

TEST(AddressSpaces, AForkChildStartsWithItsParentsModules) {
  auto rows = processes(3);
  rows[1].modules_of = ProcessId{0};
  rows[1].begin_ns = 100;
  rows[2].modules_of = ProcessId{1};
  rows[2].begin_ns = 200;
  auto early = module_row("/bin/a", 0x1000, 0x2000, 0);
  early.loaded_ns = 10;
  auto gone = module_row("/lib/gone.so", 0x3000, 0x4000, 0);
  gone.loaded_ns = 10;
  gone.unloaded_ns = 50;
  auto late = module_row("/lib/late.so", 0x5000, 0x6000, 0);
  late.loaded_ns = 150;
  auto own = module_row("/lib/own.so", 0x7000, 0x8000, 0, 1);
  own.loaded_ns = 120;
  const AddressSpaces spaces(rows, std::vector{early, gone, late, own});
  EXPECT_TRUE(spaces.find({ProcessId{1}, 110}, 0x1800));
  EXPECT_FALSE(spaces.find({ProcessId{1}, 110}, 0x3800));
  EXPECT_FALSE(spaces.find({ProcessId{1}, 160}, 0x5800));
  EXPECT_TRUE(spaces.find({ProcessId{2}, 210}, 0x1800));
  EXPECT_TRUE(spaces.find({ProcessId{2}, 210}, 0x7800));
  EXPECT_EQ(spaces.mapped({ProcessId{1}, 110}).size(), 2U) << "one of them is loaded next";
  EXPECT_EQ(spaces.mapped({ProcessId{1}, 130}).size(), 2U);
  EXPECT_EQ(spaces.mapped({ProcessId{0}, 60}).size(), 2U) << "not what is gone";
}

TEST(AddressSpaces, EqualFilesOfProcessesAreOne) {
  const AddressSpaces spaces(processes(2), std::vector{module_row("/bin/a", 0x1000, 0x2000, 0x1000, 0),
                                                       module_row("/bin/a", 0x9000, 0xa000, 0x9000, 1)});
  EXPECT_EQ(spaces.files().size(), 1U);
  EXPECT_EQ(spaces.find({ProcessId{0}, 0}, 0x1010), spaces.find({ProcessId{1}, 0}, 0x9010));
}

TEST(AddressSpaces, DamagedRowsAreSurvived) {
  auto rows = processes(3);
  rows[0].modules_of = ProcessId{1};  // a circle
  rows[1].modules_of = ProcessId{0};
  rows[2].modules_of = ProcessId{4000};
  const AddressSpaces spaces(
      rows, std::vector{module_row("/bin/a", 0x2000, 0x1000, 0), module_row("/bin/b", 0x1000, 0x2000, 0, 500),
                        module_row("/bin/c", 0x1000, 0x2000, 0, 1)});
  EXPECT_TRUE(spaces.find({ProcessId{1}, 0}, 0x1800));
  EXPECT_FALSE(spaces.find({ProcessId{2}, 0}, 0x1800));
}

TEST(IntervalIndex, OverlappingRanges) {
  IntervalIndex<int> index;
  index.add(0, 100, 1);
  index.add(10, 20, 2);
  index.add(30, 40, 3);
  index.add(50, 50, 4);
  index.build();
  const auto at = [&](std::uint64_t address) {
    std::vector<int> found;
    index.covering(address, [&](int value, std::uint64_t, std::uint64_t) { found.push_back(value); });
    return found;
  };
  EXPECT_EQ(at(15), (std::vector{2, 1}));
  EXPECT_EQ(at(35), (std::vector{3, 1}));
  EXPECT_EQ(at(50), (std::vector{1}));
  EXPECT_EQ(at(100), std::vector<int>{});
}

}  // namespace
}  // namespace crosstalk::attribution::test::address_space_test
