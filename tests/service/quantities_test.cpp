// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/quantities.h"

#include <gtest/gtest.h>

namespace crosstalk::service::quantities_test {
namespace {

TEST(Durations, AreWholeNumbersWithAUnit) {
  EXPECT_EQ(parse_duration_s("90s"), 90U);
  EXPECT_EQ(parse_duration_s("5m"), 300U);
  EXPECT_EQ(parse_duration_s("2h"), 7200U);
  EXPECT_EQ(parse_duration_s("7d"), 604800U);
  EXPECT_EQ(parse_duration_s("0s"), 0U);
  for (const char* const text :
       {"", "s", "5", "5x", "5ms", "5 s", " 5s", "5s ", "-5s", "+5s", "1.5h", "0x5s", "5S", "5sd"}) {
    EXPECT_EQ(parse_duration_s(text), std::nullopt) << text;
  }
}

TEST(Durations, EndAtAHundredYears) {
  EXPECT_EQ(parse_duration_s("36600d"), 36600ULL * 86400);
  EXPECT_EQ(parse_duration_s("36601d"), std::nullopt);
  EXPECT_EQ(parse_duration_s("18446744073709551615s"), std::nullopt);
  EXPECT_EQ(parse_duration_s("18446744073709551616s"), std::nullopt);
  EXPECT_EQ(parse_duration_s("307445734561825861m"), std::nullopt);  // times 60 it would be 44 again
}

TEST(Percentages, AreFractions) {
  EXPECT_EQ(parse_percent("1%"), 0.01);
  EXPECT_EQ(parse_percent("0.5%"), 0.005);
  EXPECT_EQ(parse_percent("0%"), 0.0);
  EXPECT_EQ(parse_percent("100%"), 1.0);
  for (const char* const text :
       {"", "%", "1", "1 %", "-1%", "100.1%", "nan%", "inf%", "1e3%", "1%%", "0x1%", "one%", "+1%"}) {
    EXPECT_EQ(parse_percent(text), std::nullopt) << text;
  }
}

TEST(Sizes, ArePowersOf1024) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("77"), 77U);
  EXPECT_EQ(parse_bytes("1K"), 1024U);
  EXPECT_EQ(parse_bytes("512M"), 512ULL << 20U);
  EXPECT_EQ(parse_bytes("3G"), 3ULL << 30U);
  EXPECT_EQ(parse_bytes("1T"), 1ULL << 40U);
  EXPECT_EQ(parse_bytes("1048576T"), 1ULL << 60U);
  for (const char* const text :
       {"", "K", "1k", "1KB", "1 K", "-1K", "1.5G", "1048577T", "1152921504606846977", "99999999999999999999"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace crosstalk::service::quantities_test
