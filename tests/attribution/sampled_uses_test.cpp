// SPDX-License-Identifier: Apache-2.0
#include "attribution/objects/sampled_uses.h"

#include <gtest/gtest.h>

#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::sampled_uses_test {
namespace {

constexpr std::uint64_t ms = 1'000'000;

class SampledUses : public testing::Test {
 protected:
  SampledUses() : threads_(make_threads(3)), uses_(threads_, code_) {}

  void use(std::uint32_t thread, std::uint64_t address, AccessKind access = AccessKind::store) {
    profile::SampleRow row;
    row.thread = ThreadId{thread};
    row.time_ns = ++now_ * ms;
    row.cpu_ns = ms;
    row.address = address;
    row.width = 8;
    row.access = access;
    uses_.add(row);
  }
  std::vector<SampledUse> in_turn() {
    return uses_.in_turn([](ThreadId, std::uint64_t, std::uint64_t address) {
      return std::string(address < 0x2000 ? "items" : "others");
    });
  }

  std::vector<profile::ThreadRow> threads_;
  UnknownCode code_;
  LineUses uses_;
  std::uint64_t now_ = 0;
};

TEST_F(SampledUses, OfThreadsThatTakeTurnsAtTheLinesOfAnObject) {
  for (std::uint64_t i = 0; i < 30; ++i) {
    use(i % 3, 0x1000 + 64 * (i / 3));
  }
  const auto found = in_turn();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].object, "items");
  EXPECT_EQ(found[0].threads, (std::set<std::uint32_t>{0, 1, 2}));
  EXPECT_DOUBLE_EQ(found[0].time_s, 0.03);
  EXPECT_EQ(found[0].samples, 30U);
}

TEST_F(SampledUses, NotWhereEachThreadHasLinesOfItsOwn) {
  for (std::uint64_t i = 0; i < 60; ++i) {
    use(i % 3, 0x1000 + 64 * (i % 3));
  }
  EXPECT_TRUE(in_turn().empty());
}

TEST_F(SampledUses, NotWhereNobodyStores) {
  for (std::uint64_t i = 0; i < 60; ++i) {
    use(i % 3, 0x1000, AccessKind::load);
  }
  EXPECT_TRUE(in_turn().empty());
}

TEST_F(SampledUses, NotWhereOneThreadFillsWhatOthersThenUse) {
  for (std::uint64_t i = 0; i < 30; ++i) {
    use(0, 0x1000 + 64 * i);
  }
  for (std::uint64_t i = 0; i < 30; ++i) {
    use(1, 0x1000 + 64 * i, AccessKind::load);
  }
  EXPECT_TRUE(in_turn().empty());
}

TEST_F(SampledUses, MostTimeFirst) {
  for (std::uint64_t i = 0; i < 40; ++i) {
    use(i % 2, 0x3000);
    if (i % 2 == 0) {
      use(i / 2 % 2, 0x1000);
    }
  }
  const auto found = in_turn();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].object, "others");
  EXPECT_EQ(found[1].object, "items");
}

}  // namespace
}  // namespace crosstalk::attribution::test::sampled_uses_test
