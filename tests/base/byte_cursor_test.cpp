// SPDX-License-Identifier: Apache-2.0
#include "base/byte_cursor.h"

#include <gtest/gtest.h>

#include <array>

namespace crosstalk::byte_cursor_test {
namespace {

constexpr std::array<std::uint8_t, 8> bytes = {1, 2, 'a', 'b', 0, 'c', 0, 'd'};

TEST(ByteCursor, TakesFieldsInTheByteOrderOfTheirMachine) {
  EXPECT_EQ(ByteCursor(std::as_bytes(std::span(bytes))).take<std::uint16_t>(), 0x0201);
  EXPECT_EQ(ByteCursor(std::as_bytes(std::span(bytes)), ByteOrder::big).take<std::uint16_t>(), 0x0102);
}

TEST(ByteCursor, TakesTextsUpToTheirEnd) {
  ByteCursor cursor(std::as_bytes(std::span(bytes)));
  cursor.take_bytes(2);
  EXPECT_EQ(cursor.take_terminated_text(), "ab");
  EXPECT_EQ(cursor.take_terminated_text(), "c");
  EXPECT_TRUE(cursor.whole());
  EXPECT_EQ(cursor.take_terminated_text(), "");
  EXPECT_FALSE(cursor.whole()) << "the last text has no end";
}

TEST(ByteCursor, OnceAFieldIsMissingAllAre) {
  ByteCursor cursor(std::as_bytes(std::span(bytes)));
  cursor.take_bytes(6);
  EXPECT_EQ(cursor.take<std::uint32_t>(), 0U);
  EXPECT_EQ(cursor.take<std::uint8_t>(), 0U);
  EXPECT_FALSE(cursor.whole());
}

}  // namespace
}  // namespace crosstalk::byte_cursor_test
