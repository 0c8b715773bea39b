// SPDX-License-Identifier: Apache-2.0
// The work of single instructions, by their bytes.
#include "symbolizer/loops/instruction_work.h"

#include <gtest/gtest.h>

#include <vector>

namespace crosstalk::symbolizer::instruction_work_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

void expect(const Bytes& code, std::optional<double> loads, std::optional<double> stores, std::optional<double> bytes,
            std::optional<double> flops) {
  const auto work = work_of(code);
  ASSERT_TRUE(work);
  EXPECT_EQ(work->instructions, 1);
  EXPECT_EQ(work->loads, loads);
  EXPECT_EQ(work->stores, stores);
  EXPECT_EQ(work->bytes, bytes);
  EXPECT_EQ(work->flops, flops);
}

TEST(InstructionWork, Accesses) {
  expect({0x48, 0x8b, 0x07}, 1, 0, 8, 0);              // mov (%rdi), %rax
  expect({0x48, 0x01, 0x07}, 1, 1, 16, 0);             // add %rax, (%rdi)
  expect({0x53}, 0, 1, 8, 0);                          // push %rbx
  expect({0xff, 0x37}, 1, 1, 16, 0);                   // push (%rdi)
  expect({0x48, 0x8d, 0x47, 0x08}, 0, 0, 0, 0);        // lea 8(%rdi), %rax
  expect({0x0f, 0x18, 0x0f}, 0, 0, 0, 0);              // prefetcht0 (%rdi)
  expect({0x0f, 0x1f, 0x44, 0x00, 0x00}, 0, 0, 0, 0);  // nopl 0(%rax,%rax)
  expect({0xa4}, 1, 1, 2, 0);                          // movsb
}

TEST(InstructionWork, CompareAndExchangeStoresInAnyCase) {
  expect({0xf0, 0x0f, 0xb1, 0x0f}, 1, 1, 8, 0);         // lock cmpxchg [rdi], ecx
  expect({0xf0, 0x48, 0x0f, 0xc7, 0x0f}, 1, 1, 32, 0);  // lock cmpxchg16b [rdi]
}

TEST(InstructionWork, WhatDataDecidesIsUnknown) {
  expect({0xf3, 0xa4}, std::nullopt, std::nullopt, std::nullopt, 0);               // rep movsb
  expect({0xc4, 0xe2, 0xed, 0x92, 0x04, 0xcf}, std::nullopt, 0, std::nullopt, 0);  // vgatherqpd
  expect({0x62, 0xf1, 0xf5, 0x49, 0x58, 0xc2}, 0, 0, 0, std::nullopt);             // vaddpd %zmm2,%zmm1,%zmm0{%k1}
}

TEST(InstructionWork, FloatingPoint) {
  expect({0xf2, 0x0f, 0x58, 0xc1}, 0, 0, 0, 1);              // addsd
  expect({0x0f, 0x59, 0x07}, 1, 0, 16, 4);                   // mulps (%rdi), %xmm0
  expect({0xc5, 0xf5, 0x58, 0xc2}, 0, 0, 0, 4);              // vaddpd %ymm
  expect({0xc4, 0xe2, 0xf5, 0xb8, 0xc2}, 0, 0, 0, 8);        // vfmadd231pd %ymm
  expect({0xc4, 0xe2, 0x71, 0xb9, 0xc2}, 0, 0, 0, 2);        // vfmadd231ss
  expect({0x62, 0xf1, 0xf5, 0x48, 0x58, 0xc2}, 0, 0, 0, 8);  // vaddpd %zmm
  expect({0xf2, 0x0f, 0x51, 0xc1}, 0, 0, 0, 1);              // sqrtsd
  expect({0x66, 0x0f, 0x7c, 0xc1}, 0, 0, 0, 2);              // haddpd
  expect({0xd8, 0xc1}, 0, 0, 0, 1);                          // fadd %st(1), %st
  expect({0x66, 0x0f, 0x28, 0xc1}, 0, 0, 0, 0);              // movapd
  expect({0x66, 0x0f, 0xfe, 0xc1}, 0, 0, 0, 0);              // paddd
  expect({0xf2, 0x48, 0x0f, 0x2a, 0xc0}, 0, 0, 0, 0);        // cvtsi2sd
  expect({0x66, 0x0f, 0x2f, 0xc1}, 0, 0, 0, 0);              // comisd
}

TEST(InstructionWork, NoInstructionNoWork) { EXPECT_FALSE(work_of(Bytes{0x06})); }

}  // namespace
}  // namespace crosstalk::symbolizer::instruction_work_test
