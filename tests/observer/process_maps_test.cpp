// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/process_maps.h"

#include <gtest/gtest.h>

namespace crosstalk::observer::process_maps_test {
namespace {

constexpr const char* text =
    "7ffff000-7ffff800 rw-p 00000000 00:00 0                          [stack]\n"
    "00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a program\n"
    "00651000-00652000 rw-p 00051000 08:02 173521      /usr/bin/gone (deleted)\n"
    "00e03000-00e24000 rw-p 00000000 00:00 0 \n"
    "7fff0000-7fff2000 r-xp 00000000 00:00 0                          [vdso]\n"
    "no mapping at all\n"
    "5-4 r--p 0 0:0 0 ends before it begins\n";

TEST(ProcessMaps, LinesAreUnderstoodAndOrdered) {
  const std::vector<Mapping> maps = parse_maps(text);
  ASSERT_EQ(maps.size(), 5U);
  EXPECT_EQ(maps[0].begin, 0x400000U);
  EXPECT_EQ(maps[0].end, 0x452000U);
  EXPECT_EQ(maps[0].offset, 0x1000U);
  EXPECT_TRUE(maps[0].readable && maps[0].executable && !maps[0].writable);
  EXPECT_EQ(maps[0].inode, 173521U);
  EXPECT_EQ(maps[0].device, std::uint64_t{8} << 32U | 2U);
  EXPECT_FALSE(maps[0].shared);
  EXPECT_EQ(maps[0].path, "/usr/bin/a program");
  EXPECT_EQ(maps[1].path, "/usr/bin/gone");
  EXPECT_EQ(maps[2].path, "");
  EXPECT_EQ(maps[4].path, "[stack]");
}

TEST(ProcessMaps, AnAddressIsFoundInItsMapping) {
  const std::vector<Mapping> maps = parse_maps(text);
  EXPECT_EQ(mapping_at(maps, 0x3fffff), nullptr);
  EXPECT_EQ(mapping_at(maps, 0x400000), maps.data());
  EXPECT_EQ(mapping_at(maps, 0x451fff), maps.data());
  EXPECT_EQ(mapping_at(maps, 0x452000), nullptr);
  EXPECT_EQ(mapping_at(maps, UINT64_MAX), nullptr);
  EXPECT_EQ(mapping_at({}, 0), nullptr);
}

TEST(ProcessMaps, OwnDataIsWhatOnlyTheKernelFills) {
  const std::vector<Mapping> maps = parse_maps(
      "00400000-00401000 rw-p 00001000 08:02 5      /usr/bin/program\n"
      "00401000-00403000 rw-p 00000000 00:00 0 \n"
      "00405000-00406000 rw-p 00000000 00:00 0      [heap]\n"
      "7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \n"
      "7f0000200000-7f0000201000 rw-s 00000000 00:01 7      /dev/shm/shared\n"
      "7f0000201000-7f0000202000 rw-p 00000000 00:00 0 \n");
  EXPECT_TRUE(is_own_data(maps, 0x400fff));
  EXPECT_TRUE(is_own_data(maps, 0x402000));
  EXPECT_TRUE(is_own_data(maps, 0x405008));
  EXPECT_FALSE(is_own_data(maps, 0x404000));
  EXPECT_FALSE(is_own_data(maps, 0x7f0000000000));
  EXPECT_FALSE(is_own_data(maps, 0x7f0000200000));
  EXPECT_FALSE(is_own_data(maps, 0x7f0000201000));
}

TEST(ProcessMaps, TheKernelsOwnPagesAreNotWatched) {
  const std::vector<Mapping> maps = parse_maps(text);
  EXPECT_TRUE(is_watchable(mapping_at(maps, 0xe03000)));
  EXPECT_FALSE(is_watchable(mapping_at(maps, 0x7fff0000)));
  EXPECT_FALSE(is_watchable(nullptr));
}

TEST(ProcessMaps, ALineOfSharedMemoryIsFoundWhereverItIsMapped) {
  const std::vector<Mapping> one = parse_maps(
      "10000-20000 rw-s 00000000 00:01 77   /memfd:table (deleted)\n"
      "20000-30000 rw-p 00000000 00:01 77   /memfd:table (deleted)\n"
      "30000-40000 rw-s 00000000 00:00 0 \n");
  const std::vector<Mapping> other = parse_maps(
      "500000-501000 rw-s 00000000 00:01 78 /memfd:table (deleted)\n"
      "600000-601000 rw-s 00000000 01:01 77 /memfd:table (deleted)\n"
      "700000-704000 rw-s 00001000 00:01 77 /memfd:table (deleted)\n");
  const watch_policy::SharedLine line = shared_line_in(one[0], 0x12345);
  ASSERT_TRUE(line.known);
  EXPECT_EQ(line.file_offset, 0x2340U);
  EXPECT_EQ(address_of(other, line), 0x701340U);
  EXPECT_EQ(address_of(one, line), 0x12340U);
  EXPECT_EQ(address_of(other, shared_line_in(one[0], 0x10000)), 0U);  // of what the other has not mapped
  EXPECT_EQ(line.key(), shared_line_in(other[2], 0x701340).key());
  EXPECT_NE(line.key(), shared_line_in(other[0], 0x500340).key());
  EXPECT_FALSE(shared_line_in(one[1], 0x22340).known);  // a copy of its own
  EXPECT_FALSE(shared_line_in(one[2], 0x32340).known);
}

TEST(ProcessMaps, NothingIsMappedByNoText) { EXPECT_TRUE(parse_maps("").empty()); }

}  // namespace
}  // namespace crosstalk::observer::process_maps_test
