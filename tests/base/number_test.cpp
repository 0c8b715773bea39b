// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/cpu_list.h"

namespace crosstalk::number_test {
namespace {

TEST(Number, IsTakenOffTheFront) {
  std::string_view text = "12ab 3";
  EXPECT_EQ(take_leading<int>(text), 12);
  EXPECT_EQ(text, "ab 3");
  EXPECT_EQ(take_leading<int>(text), std::nullopt);
  EXPECT_EQ(text, "ab 3");
  EXPECT_EQ(take_leading<int>(text, 16), 0xab);
  EXPECT_EQ(text, " 3");
}

TEST(Number, ThatDoesNotFitIsNone) {
  EXPECT_EQ(leading_number<std::uint8_t>("256"), std::nullopt);
  EXPECT_EQ(leading_number<std::uint8_t>("255 s"), 255);
  EXPECT_EQ(leading_number<unsigned>("-1"), std::nullopt);
  EXPECT_EQ(leading_number<int>(""), std::nullopt);
}

TEST(Number, MayHaveToBeAllOfTheText) {
  EXPECT_EQ(whole_number<int>("-7"), -7);
  EXPECT_EQ(whole_number<int>("7 "), std::nullopt);
  EXPECT_EQ(whole_number<int>(""), std::nullopt);
  EXPECT_EQ(whole_number<double>("1.5e3"), 1500);
  EXPECT_EQ(whole_number<double>("1.5x"), std::nullopt);
}

TEST(CpuList, NamesRanges) {
  EXPECT_EQ(cpus_in("0-2,8"), (std::vector<std::uint32_t>{0, 1, 2, 8}));
  EXPECT_EQ(cpus_in("5"), std::vector<std::uint32_t>{5});
  for (const char* const wrong : {"", "a", "3-1", "0-65536"}) {
    EXPECT_TRUE(cpus_in(wrong).empty()) << wrong;
  }
}

}  // namespace
}  // namespace crosstalk::number_test
