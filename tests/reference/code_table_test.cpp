// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/code_table.h"

#include <gtest/gtest.h>

namespace crosstalk::reference::code_table_test {
namespace {

const std::vector<std::uint8_t> nop = {0x90};
const std::vector<std::uint8_t> pause_bytes = {0xf3, 0x90};

TEST(CodeTable, OneInstructionHoweverOftenItIsTranslated) {
  CodeTable table;
  Code& first = table.code(0, 0x10, nop);
  EXPECT_EQ(&table.code(0, 0x10, nop), &first);
  EXPECT_NE(&table.code(1, 0x10, nop), &first);
  EXPECT_NE(&table.code(0, 0x11, nop), &first);
}

TEST(CodeTable, RewrittenCodeIsOtherCode) {
  CodeTable table;
  Code& first = table.code(no_file, 0x10, nop);
  Code& second = table.code(no_file, 0x10, pause_bytes);
  EXPECT_NE(&first, &second);
  EXPECT_TRUE(second.facts.waits);
}

TEST(CodeTable, AnInstructionIsExecutedWithEachBlockThatHoldsIt) {
  CodeTable table;
  Code& one = table.code(0, 0x10, nop);
  Code& two = table.code(0, 0x11, nop);
  table.block({&one, &two}).executions += 5;
  table.block({&two}).executions += 2;
  EXPECT_EQ(&table.block({&two}), &table.block({&two}));
  EXPECT_EQ(table.executions(), (std::vector<std::uint64_t>{5, 7}));
}

}  // namespace
}  // namespace crosstalk::reference::code_table_test
