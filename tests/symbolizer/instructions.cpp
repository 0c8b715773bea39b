// SPDX-License-Identifier: Apache-2.0
// Memory accesses of instructions, alone and found behind an address.
#include "symbolizer/cfg/instructions.h"

#include <gtest/gtest.h>

#include "fixture.h"

namespace crosstalk::symbolizer::instructions_test {
namespace {

/// The accesses of the fixture's `accesses`, instruction by instruction.
struct Step {
  Instruction instruction;
  std::optional<MemoryAccess> at, before_next;
};

std::vector<Step> steps(Program& program) {
  const auto file = ElfFile::open(program.path);
  const std::uint64_t begin = program.address("accesses");
  const std::uint64_t end = program.symbols.locate(program.id, begin).function_end;
  std::vector<Step> result;
  for (std::uint64_t address = begin; address < end;) {
    const auto instruction = decode(file->code_at(address), address);
    if (!instruction) {
      break;
    }
    result.push_back({*instruction, program.symbols.access_at(program.id, address),
                      program.symbols.access_before(program.id, instruction->end())});
    address = instruction->end();
  }
  return result;
}

class Accesses : public testing::Test {
 protected:
  void expect(std::size_t index, AccessKind kind, unsigned width) {
    ASSERT_LT(index, all.size());
    ASSERT_TRUE(all[index].at) << index;
    EXPECT_EQ(all[index].at->kind, kind) << index;
    EXPECT_EQ(all[index].at->width, width) << index;
    EXPECT_EQ(all[index].at->instruction, all[index].instruction.address);
    ASSERT_TRUE(all[index].before_next) << index;
    EXPECT_EQ(all[index].before_next->instruction, all[index].at->instruction);
  }
  void expect_none(std::size_t index) {
    ASSERT_LT(index, all.size());
    EXPECT_FALSE(all[index].at) << index;
    EXPECT_FALSE(all[index].before_next) << index;
  }
  Program program{"program_o2"};
  std::vector<Step> all = steps(program);
};

TEST_F(Accesses, KindsAndWidths) {
  expect(0, AccessKind::load, 8);
  expect(1, AccessKind::store, 4);
  expect(2, AccessKind::load_store, 8);
  expect(3, AccessKind::load_store, 8);
  expect_none(4);  // lea
  expect_none(5);  // nop
  expect_none(6);  // prefetch
  expect(7, AccessKind::store, 8);
  expect(8, AccessKind::load, 8);
  expect(9, AccessKind::load, 4);
  expect(10, AccessKind::load, 8);
  expect(11, AccessKind::store, 16);
  expect(12, AccessKind::load, 8);
  expect(13, AccessKind::load_store, 8);
  expect(14, AccessKind::store, 0);
  expect(15, AccessKind::load_store, 8);
  expect(16, AccessKind::load, 8);
}

TEST_F(Accesses, AddressesOfOperands) {
  ASSERT_GT(all.size(), 13U);
  const MemoryAccess& indexed = *all[1].at;
  EXPECT_EQ(indexed.base, Register::rax);
  EXPECT_EQ(indexed.index, Register::rcx);
  EXPECT_EQ(indexed.scale, 4);
  EXPECT_EQ(indexed.displacement, 8);
  EXPECT_FALSE(indexed.overwrites_base);
  EXPECT_TRUE(all[9].at->segment_fs);
  EXPECT_EQ(all[9].at->displacement, 0x10);
  EXPECT_FALSE(all[9].at->base);
  EXPECT_TRUE(all[10].at->overwrites_base);
  EXPECT_EQ(all[12].at->base, Register::rip);
  EXPECT_EQ(all[12].instruction.end() + static_cast<std::uint64_t>(all[12].at->displacement),
            program.address("global_scalar"));
  EXPECT_EQ(all[7].at->base, Register::rsp);
  EXPECT_EQ(all[7].at->displacement, -8);
  EXPECT_TRUE(all[7].at->overwrites_base);
}

TEST_F(Accesses, NothingIsBehindCallsAndJumps) {
  ASSERT_GT(all.size(), 19U);
  ASSERT_TRUE(all[17].at);  // call *8(%r14): the explicit operand, not the pushed return address
  EXPECT_EQ(all[17].at->kind, AccessKind::load);
  EXPECT_EQ(all[17].at->base, Register::r14);
  EXPECT_FALSE(all[17].before_next);
  EXPECT_FALSE(all[18].before_next);
}

TEST_F(Accesses, OnlyInstructionBoundariesCount) {
  const std::uint64_t begin = program.address("accesses");
  EXPECT_FALSE(program.symbols.access_before(program.id, begin));
  EXPECT_FALSE(program.symbols.access_before(program.id, begin + 1));
  EXPECT_FALSE(program.symbols.access_before(program.id, 0));
  EXPECT_FALSE(program.symbols.access_at(program.id, ~std::uint64_t{0}));
}

TEST(Decoding, GatherHasNoComputableAddress) {
  const std::uint8_t gather[] = {0xc4, 0xe2, 0x7d, 0x90, 0x04, 0x88};  // vpgatherdd (%rax,%ymm1,4), %ymm0, %ymm0
  const std::uint8_t valid[] = {0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x88};   // ... mask %ymm2
  static_cast<void>(memory_access(gather, 0));
  const auto access = memory_access(valid, 0);
  ASSERT_TRUE(access);
  EXPECT_EQ(access->kind, AccessKind::load);
  EXPECT_TRUE(access->overwrites_base);
  EXPECT_EQ(access->width, 0);
}

TEST(Decoding, WideVectorsAndXsave) {
  const std::uint8_t zmm[] = {0x62, 0xf1, 0x7c, 0x48, 0x11, 0x06};  // vmovups %zmm0, (%rsi)
  const std::uint8_t xsave[] = {0x0f, 0xae, 0x27};                  // xsave (%rdi)
  ASSERT_TRUE(memory_access(zmm, 0));
  EXPECT_EQ(memory_access(zmm, 0)->width, 64);
  EXPECT_EQ(memory_access(zmm, 0)->kind, AccessKind::store);
  ASSERT_TRUE(memory_access(xsave, 0));
  EXPECT_EQ(memory_access(xsave, 0)->width, 0);
}

TEST(Decoding, TruncatedBytes) {
  const std::uint8_t bytes[] = {0x48, 0x8b, 0x84};
  EXPECT_FALSE(decode(bytes, 0));
  EXPECT_FALSE(memory_access(bytes, 0));
  EXPECT_FALSE(decode({}, 0));
}

}  // namespace
}  // namespace crosstalk::symbolizer::instructions_test
