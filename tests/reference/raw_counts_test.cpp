// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/raw_counts.h"

#include <gtest/gtest.h>

#include <sstream>

namespace crosstalk::reference::raw_counts_test {
namespace {

RawCounts small() {
  Counter counter(1U << 20U);
  std::array<Counter::Cursor, 3> cursors;
  CodeTable codes;
  const std::vector<std::uint8_t> add = {0xf2, 0x0f, 0x58, 0xc1};  // addsd: one flop
  Code& store = codes.code(0, 0x10, add);
  Code& load = codes.code(no_file, 0x7000, add);
  codes.block({&store, &load}).executions = 3;
  codes.block({&load}).executions = 2;
  store.stores = 3;
  store.store_bytes = 24;
  counter.allocated({0x1000, 64, 0xaa});
  for (int times = 0; times < 3; ++times) {
    EXPECT_TRUE(counter.access({1, store.index, 0x1000, 8, AccessKind::store}, cursors[1]));
    EXPECT_TRUE(counter.access({2, load.index, 0x1000, 8, AccessKind::load}, cursors[2]));
  }
  ModuleTable modules;
  std::istringstream maps("1000-2000 r-xp 00000000 08:01 1 /opt/a program\n");
  modules.read(maps);
  RawCounts raw = raw_counts(counter, codes, modules);
  raw.threads = 3;
  raw.quantum = 100;
  raw.seed = 7;
  return raw;
}

TEST(RawCounts, GathersWhatWasCounted) {
  const RawCounts raw = small();
  ASSERT_EQ(raw.codes.size(), 2U);
  EXPECT_EQ(raw.codes[0], (RawCode{0, 0x10, 3, 3, 0, 3, 0, 24}));
  EXPECT_EQ(raw.codes[1], (RawCode{no_file, 0x7000, 5, 5, 0, 0, 0, 0}));
  ASSERT_EQ(raw.by_code.size(), 1U);
  EXPECT_EQ(raw.by_code[0].counts.true_sharing, 3U);
  ASSERT_EQ(raw.invalidations.size(), 1U);
  EXPECT_EQ(raw.invalidations[0].count, 2U);
}

TEST(RawCounts, WrittenAndReadTheyAreTheSame) {
  const RawCounts raw = small();
  std::stringstream text, again;
  write(text, raw);
  const auto read = read_raw_counts(text);
  ASSERT_TRUE(read) << read.error().message;
  write(again, *read);
  EXPECT_EQ(again.str(), text.str());
  EXPECT_EQ(read->codes, raw.codes);
  EXPECT_EQ(read->files, raw.files);
  EXPECT_EQ(read->segments, raw.segments);
  EXPECT_EQ(read->by_data[0].pair, raw.by_data[0].pair);
  EXPECT_EQ(read->blocks[0].caller, 0xaaU);
}

TEST(RawCounts, APartIsNotTakenForTheWhole) {
  std::stringstream text;
  write(text, small());
  const std::string whole = text.str();
  for (std::size_t length = 0; length + 4 < whole.size(); ++length) {  // without "end\n"
    std::istringstream part(whole.substr(0, length));
    EXPECT_FALSE(read_raw_counts(part)) << length;
  }
}

TEST(RawCounts, IndicesThatLeadNowhereAreRefused) {
  for (const char* fact : {"segment 0 1 2 3", "code_pair 0 1 0 0 1 1", "data_pair 64 1 0 1 1 1", "nonsense"}) {
    std::istringstream text(std::string("crosstalk-reference-raw 1\n") + fact + "\nend\n");
    EXPECT_FALSE(read_raw_counts(text)) << fact;
  }
}

TEST(RawCounts, AnErrorInTheirPlaceIsPassedOn) {
  std::stringstream text;
  write_error(text, "too little memory");
  const auto read = read_raw_counts(text);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "too little memory");
}

}  // namespace
}  // namespace crosstalk::reference::raw_counts_test
