// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/cfg/disassembly.h"

#include <gtest/gtest.h>

#include <vector>

namespace crosstalk::symbolizer::disassembly_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(Disassembly, IsInTheSyntaxOfObjdump) {
  EXPECT_EQ(disassemble(Bytes{0x48, 0x83, 0x00, 0x01}, 0x1000).text, "addq $0x1, (%rax)");
  EXPECT_EQ(disassemble(Bytes{0xc3}, 0x1000).text, "ret");
}

TEST(Disassembly, JumpsAndCallsSayWhereTo) {
  const Disassembled jump = disassemble(Bytes{0xeb, 0xfe}, 0x1000);
  EXPECT_EQ(jump.text, "jmp 0x1000");
  EXPECT_EQ(jump.code_target, 0x1000U);
  EXPECT_FALSE(jump.data_target);
  EXPECT_EQ(disassemble(Bytes{0xe8, 0x10, 0x00, 0x00, 0x00}, 0x1000).code_target, 0x1015U);
}

TEST(Disassembly, OperandsBesideTheCodeSayWhereTheyAre) {
  const Disassembled add = disassemble(Bytes{0xf0, 0xff, 0x05, 0x20, 0x00, 0x00, 0x00}, 0x1000);
  EXPECT_EQ(add.data_target, 0x1027U);
  EXPECT_FALSE(add.code_target);
}

TEST(Disassembly, WhatIsNoInstructionHasNoText) {
  EXPECT_EQ(disassemble(Bytes{0x06}, 0).text, "");
  EXPECT_EQ(disassemble({}, 0).text, "");
  EXPECT_EQ(disassemble(Bytes{0xe8, 0x10}, 0).text, "");
}

}  // namespace
}  // namespace crosstalk::symbolizer::disassembly_test
