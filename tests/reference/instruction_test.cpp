// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/instruction.h"

#include <gtest/gtest.h>

#include <vector>

namespace crosstalk::reference::instruction_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

InstructionFacts facts(const Bytes& code) { return instruction_facts(code).value(); }

TEST(Instruction, LoadAndStoreWidths) {
  EXPECT_EQ(facts({0x48, 0x8b, 0x07}), (InstructionFacts{.load_bytes = 8}));         // mov (%rdi), %rax
  EXPECT_EQ(facts({0x88, 0x07}), (InstructionFacts{.store_bytes = 1}));              // mov %al, (%rdi)
  EXPECT_EQ(facts({0xc5, 0xfd, 0x10, 0x07}), (InstructionFacts{.load_bytes = 32}));  // vmovupd (%rdi), %ymm0
  EXPECT_EQ(facts({0xdb, 0x2f}), (InstructionFacts{.load_bytes = 10}));              // fldt (%rdi)
}

TEST(Instruction, ReadModifyWrites) {
  const InstructionFacts eight{.load_bytes = 8, .store_bytes = 8, .read_modify_write = true};
  EXPECT_EQ(facts({0xf0, 0x48, 0xff, 0x07}), eight);                 // lock incq (%rdi)
  EXPECT_EQ(facts({0x48, 0x01, 0x07}), eight);                       // add %rax, (%rdi)
  EXPECT_EQ(facts({0x48, 0x87, 0x07}), eight);                       // xchg %rax, (%rdi)
  EXPECT_EQ(facts({0xf0, 0x48, 0x0f, 0xb1, 0x0f}), eight);           // lock cmpxchg %rcx, (%rdi)
  EXPECT_EQ(facts({0xf0, 0x48, 0x0f, 0xc7, 0x0f}).store_bytes, 16);  // lock cmpxchg16b (%rdi)
}

TEST(Instruction, TwoOperandsAreNoReadModifyWrite) {
  EXPECT_EQ(facts({0xff, 0x37}), (InstructionFacts{.load_bytes = 8, .store_bytes = 8}));  // pushq (%rdi)
  EXPECT_EQ(facts({0xa4}), (InstructionFacts{.load_bytes = 1, .store_bytes = 1}));        // movsb
}

TEST(Instruction, PiecesWhereTheWidthIsNotOfOneAccess) {
  EXPECT_EQ(facts({0xf3, 0xa4}).load_bytes, 0);                    // rep movsb
  EXPECT_EQ(facts({0x0f, 0xae, 0x07}).store_bytes, 0);             // fxsave (%rdi)
  EXPECT_EQ(facts({0xc4, 0xe2, 0x7d, 0x2d, 0x0f}).load_bytes, 0);  // vmaskmovpd (%rdi), %ymm0, %ymm1
}

TEST(Instruction, AddressesAreNoAccesses) {
  EXPECT_EQ(facts({0x48, 0x8d, 0x07}), InstructionFacts{});  // lea (%rdi), %rax
}

TEST(Instruction, Flops) {
  EXPECT_EQ(facts({0xf2, 0x0f, 0x58, 0xc1}).flops, 1);        // addsd
  EXPECT_EQ(facts({0x66, 0x0f, 0x59, 0xc1}).flops, 2);        // mulpd
  EXPECT_EQ(facts({0x0f, 0x5e, 0xc1}).flops, 4);              // divps
  EXPECT_EQ(facts({0xc5, 0xfc, 0x58, 0xc1}).flops, 8);        // vaddps ymm
  EXPECT_EQ(facts({0xc4, 0xe2, 0xf5, 0xb8, 0x07}).flops, 8);  // vfmadd231pd (%rdi), %ymm1, %ymm0
  EXPECT_EQ(facts({0xc4, 0xe2, 0xf1, 0x99, 0xc2}).flops, 2);  // vfmadd132sd
  EXPECT_EQ(facts({0xf2, 0x0f, 0x51, 0xc1}).flops, 1);        // sqrtsd
  EXPECT_EQ(facts({0xd8, 0xc1}).flops, 1);                    // fadd %st(1)
}

TEST(Instruction, WhatLooksLikeArithmeticAndIsNone) {
  EXPECT_EQ(facts({0x48, 0x01, 0xc1}).flops, 0);        // add %rax, %rcx
  EXPECT_EQ(facts({0xf2, 0x0f, 0x10, 0xc1}).flops, 0);  // movsd
  EXPECT_EQ(facts({0x66, 0x0f, 0xfc, 0xc1}).flops, 0);  // paddb
  EXPECT_EQ(facts({0x66, 0x0f, 0x2e, 0xc1}).flops, 0);  // ucomisd
  EXPECT_EQ(facts({0xf2, 0x0f, 0x5a, 0xc1}).flops, 0);  // cvtsd2ss
}

TEST(Instruction, PauseWaits) {
  EXPECT_TRUE(facts({0xf3, 0x90}).waits);
  EXPECT_FALSE(facts({0x90}).waits);
}

TEST(Instruction, Avx512) {
  const Bytes code = {0x62, 0xf1, 0xf5, 0x48, 0x58, 0xd0};  // vaddpd %zmm0, %zmm1, %zmm2
  EXPECT_TRUE(facts(code).is_avx512);
  EXPECT_EQ(instruction_text(code), "vaddpd zmm2, zmm1, zmm0");
  EXPECT_FALSE(facts({0xc5, 0xf5, 0x58, 0xd0}).is_avx512);  // its AVX form
}

TEST(Instruction, BytesThatAreNone) {
  EXPECT_EQ(instruction_facts({}), std::nullopt);
  EXPECT_EQ(instruction_facts(Bytes{0x62}), std::nullopt);
  EXPECT_EQ(instruction_text(Bytes{0x62}), "");
}

}  // namespace
}  // namespace crosstalk::reference::instruction_test
