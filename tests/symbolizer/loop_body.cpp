// SPDX-License-Identifier: Apache-2.0
// The bodies of small assembled loops, and the places of their operands.
#include "symbolizer/loops/loop_body.h"

#include <gtest/gtest.h>

#include "symbolizer/loops/loop_operands.h"

// Each function is taken apart as bytes and never run.
asm(R"(
.text
.macro body name
  .globl \name
  \name :
.endm
body triad
triad_loop: .globl triad_loop
  vmovapd (%rdi,%rax), %ymm1
  vfmadd213pd (%rsi,%rax), %ymm0, %ymm1
  vmovapd %ymm1, 32(%rdx,%rax)
  add $32, %rax
  cmp %rax, %rcx
  jne triad_loop
  ret
body triad_end
body streaming
streaming_loop: .globl streaming_loop
  movntps %xmm0, (%rdi)
  add $16, %rdi
  dec %rcx
  jne streaming_loop
  ret
body streaming_end
body listed
listed_loop: .globl listed_loop
  mov (%rdi,%rax,4), %ecx
  addsd (%rsi,%rcx,8), %xmm0
  inc %rax
  cmp %rax, %rdx
  jne listed_loop
  ret
body listed_end
body linked
linked_loop: .globl linked_loop
  mov (%rdi), %rdi
  test %rdi, %rdi
  jne linked_loop
  ret
body linked_end
body reloaded
reloaded_loop: .globl reloaded_loop
  mov 0x2000(%rip), %rsi
  mov 8(%rsp), %rdx
  mulsd (%rsi,%rax,8), %xmm0
  movsd %xmm0, (%rdx,%rax,8)
  inc %rax
  cmp %rax, %rcx
  jne reloaded_loop
  ret
body reloaded_end
body summed
summed_loop: .globl summed_loop
  addsd %xmm1, %xmm0
  dec %rcx
  jne summed_loop
  ret
body summed_end
body scalars
scalars_loop: .globl scalars_loop
  divss %xmm1, %xmm0
  addss %xmm1, %xmm2
  mulps %xmm1, %xmm3
  call scalars_loop
  dec %rcx
  jne scalars_loop
  ret
body scalars_end
body either_way
either_way_loop: .globl either_way_loop
  test %rax, %rcx
  je either_way_latch
  addsd %xmm1, %xmm0
either_way_latch:
  dec %rcx
  jne either_way_loop
  ret
body either_way_end
body hashed
hashed_loop: .globl hashed_loop
  mov (%rdi), %rax
  imul %rdx, %rax
  shr $7, %rax
  xor %ecx, %ecx
  vpaddd (%rsi), %ymm0, %ymm0
  vpxor %ymm1, %ymm1, %ymm1
  add $8, %rdi
  cmp %rdi, %r8
  jne hashed_loop
  ret
body hashed_end
body gathering
gathering_loop: .globl gathering_loop
  vmovdqu (%rdi), %xmm1
  vpcmpeqd %ymm3, %ymm3, %ymm3
  vgatherdpd %ymm3, (%rsi,%xmm1,8), %ymm2
  vfmadd231pd (%rdx), %ymm2, %ymm0
  add $16, %rdi
  add $32, %rdx
  dec %rcx
  jne gathering_loop
  ret
body gathering_end
)");

extern "C" {
extern const std::uint8_t triad[], triad_loop[], triad_end[], streaming[], streaming_loop[], streaming_end[];
extern const std::uint8_t listed[], listed_loop[], listed_end[], linked[], linked_loop[], linked_end[];
extern const std::uint8_t reloaded[], reloaded_loop[], reloaded_end[], summed[], summed_loop[], summed_end[];
extern const std::uint8_t scalars[], scalars_loop[], scalars_end[];
extern const std::uint8_t either_way[], either_way_loop[], either_way_end[];
extern const std::uint8_t hashed[], hashed_loop[], hashed_end[], gathering[], gathering_loop[], gathering_end[];
}

namespace crosstalk::symbolizer::loop_body_test {
namespace {

std::uint64_t address(const std::uint8_t* label) { return reinterpret_cast<std::uint64_t>(label); }

class Function {
 public:
  Function(const std::uint8_t* begin, const std::uint8_t* end)
      : code_(begin, end),
        read_([this](std::uint64_t at) { return code_.subspan(at - address(code_.data())); }),
        flow_(control_flow({address(begin), address(end)}, code_, read_, [](std::uint64_t) { return false; })),
        anatomy(flow_, read_) {}

  LoopBodyFacts body(const std::uint8_t* at) {
    const auto facts = loop_body_facts(anatomy.ways(anatomy.innermost(address(at))), {18, 4});
    EXPECT_TRUE(facts);
    return facts.value_or(LoopBodyFacts{});
  }

 private:
  std::span<const std::uint8_t> code_;
  ReadBytes read_;
  ControlFlow flow_;

 public:
  LoopAnatomy anatomy;
};

double flops(const LoopBodyFacts& facts, FlopWidth width, FlopType type, FlopOperation operation) {
  return facts.flops.of[FlopsByKind::index(width, type, operation)];
}

TEST(LoopBody, ATriad) {
  const LoopBodyFacts facts = Function(triad, triad_end).body(triad_loop);
  EXPECT_EQ(facts.instructions, 6);
  EXPECT_EQ(flops(facts, FlopWidth::avx2, FlopType::float64, FlopOperation::fma), 8);
  EXPECT_EQ(facts.flops.total(), 8);
  EXPECT_EQ(facts.loads, 2);
  EXPECT_EQ(facts.stores, 1);
  EXPECT_EQ(facts.access_bytes, 96);
  EXPECT_TRUE(facts.one_way);
  EXPECT_FALSE(facts.calls);
  EXPECT_FALSE(facts.indirect);
  EXPECT_EQ(facts.chain, 1);  // its counter
  EXPECT_FALSE(facts.chain_is_fpu);
}

TEST(LoopBody, AddressesThatAreLoadedAreIndirect) {
  EXPECT_TRUE(Function(listed, listed_end).body(listed_loop).indirect);
  EXPECT_TRUE(Function(linked, linked_end).body(linked_loop).indirect);
}

TEST(LoopBody, IndirectElementsAreCounted) {
  const LoopBodyFacts listed_facts = Function(listed, listed_end).body(listed_loop);
  EXPECT_EQ(listed_facts.indirect_elements, 1);
  EXPECT_EQ(listed_facts.indirect_bytes, 8);
  EXPECT_EQ(listed_facts.access_bytes, 12);
  const LoopBodyFacts facts = Function(gathering, gathering_end).body(gathering_loop);
  EXPECT_EQ(facts.gathers, 1);
  EXPECT_EQ(facts.indirect_elements, 4);
  EXPECT_EQ(facts.indirect_bytes, 32);
  EXPECT_EQ(facts.gathered_bytes, 32);
  EXPECT_EQ(facts.access_bytes, 48) << "without the gathered bytes, which a mask decides";
  EXPECT_TRUE(facts.only_gathers_vary);
  EXPECT_EQ(facts.memory_instructions, 3);
}

TEST(LoopBody, OperationsOnWholeNumbersWithoutThoseThatSteer) {
  const LoopBodyFacts facts = Function(hashed, hashed_end).body(hashed_loop);
  EXPECT_EQ(facts.integers.total(), 2 + 8) << "a product, a shift, eight sums of a vector";
  const auto of = [&](FlopWidth width, IntegerElement element, IntegerOperation operation) {
    return facts.integers.of[IntegersByKind::index(width, element, operation)];
  };
  EXPECT_EQ(of(FlopWidth::scalar, IntegerElement::int64, IntegerOperation::mul), 1);
  EXPECT_EQ(of(FlopWidth::scalar, IntegerElement::int64, IntegerOperation::add), 1);
  EXPECT_EQ(of(FlopWidth::avx2, IntegerElement::int32, IntegerOperation::add), 8);
  EXPECT_TRUE(facts.integers_fixed);
}

TEST(LoopBody, APointerThatIsLoadedFromTheSamePlaceIsNot) {
  const LoopBodyFacts facts = Function(reloaded, reloaded_end).body(reloaded_loop);
  EXPECT_FALSE(facts.indirect);
  EXPECT_EQ(facts.stack_accesses, 1);
}

TEST(LoopBody, AChainOfAdditions) {
  const LoopBodyFacts facts = Function(summed, summed_end).body(summed_loop);
  EXPECT_EQ(facts.chain, 4);
  EXPECT_TRUE(facts.chain_is_fpu);
  EXPECT_EQ(flops(facts, FlopWidth::scalar, FlopType::float64, FlopOperation::add), 1);
}

TEST(LoopBody, KindsOfOperationsAndCalls) {
  const LoopBodyFacts facts = Function(scalars, scalars_end).body(scalars_loop);
  EXPECT_TRUE(facts.calls);
  EXPECT_EQ(facts.flops.other, 1);  // the division
  EXPECT_EQ(flops(facts, FlopWidth::scalar, FlopType::float32, FlopOperation::add), 1);
  EXPECT_EQ(flops(facts, FlopWidth::sse, FlopType::float32, FlopOperation::mul), 4);
}

TEST(LoopBody, SeveralWaysCountEqually) {
  const LoopBodyFacts facts = Function(either_way, either_way_end).body(either_way_loop);
  EXPECT_FALSE(facts.one_way);
  EXPECT_EQ(facts.instructions, 4.5);
  EXPECT_EQ(facts.flops.total(), 0.5);
}

TEST(LoopBody, WhatInstructionsWaitFor) {
  using Code = std::vector<std::uint8_t>;
  EXPECT_EQ(waits_for(Code{0x48, 0x8b, 0x07}), WaitsFor::load);             // mov (%rdi), %rax
  EXPECT_EQ(waits_for(Code{0x48, 0x89, 0x07}), WaitsFor::store);            // mov %rax, (%rdi)
  EXPECT_EQ(waits_for(Code{0x48, 0x01, 0x07}), WaitsFor::load);             // add %rax, (%rdi)
  EXPECT_EQ(waits_for(Code{0x0f, 0x59, 0x07}), WaitsFor::loaded_fpu);       // mulps (%rdi), %xmm0
  EXPECT_EQ(waits_for(Code{0xc4, 0xe2, 0xf5, 0xb8, 0xc2}), WaitsFor::fpu);  // vfmadd231pd %ymm
  EXPECT_EQ(waits_for(Code{0x48, 0xff, 0xc8}), WaitsFor::nothing);          // dec %rax
  EXPECT_EQ(waits_for(Code{0x06}), WaitsFor::nothing);                      // no instruction
}

/// At a moment in which each register holds 0x1000 times its number.
LoopMoment moment_of(Function& function, const std::uint8_t* at) {
  Registers registers;
  for (std::size_t i = 0; i < general_registers; ++i) {
    registers.value[i] = 0x1000 * i;
  }
  const auto reader = function.anatomy.counters(function.anatomy.innermost(address(at))).reader_at(address(at));
  EXPECT_TRUE(reader);
  return reader->read(registers);
}

TEST(LoopOperands, LieWhereTheirRegistersSay) {
  Function function(triad, triad_end);
  const auto operands = loop_operands(function.anatomy, function.anatomy.innermost(address(triad_loop)));
  ASSERT_EQ(operands.size(), 3U);
  const LoopMoment moment = moment_of(function, triad_loop);
  const auto number = [](Register reg) { return 0x1000 * static_cast<std::uint64_t>(reg); };
  const auto first = place_of(operands[0], moment);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->address, number(Register::rdi) + number(Register::rax));
  EXPECT_EQ(first->stride, 32);
  EXPECT_TRUE(operands[0].loads && !operands[0].stores);
  const auto last = place_of(operands[2], moment);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->address, number(Register::rdx) + number(Register::rax) + 32);
  EXPECT_TRUE(operands[2].stores && !operands[2].loads);
  EXPECT_EQ(operands[2].width, 32);
}

TEST(LoopOperands, StoresPastTheCachesAreMarked) {
  Function function(streaming, streaming_end);
  const auto operands = loop_operands(function.anatomy, 0);
  ASSERT_EQ(operands.size(), 1U);
  EXPECT_TRUE(operands[0].streaming);
  EXPECT_EQ(place_of(operands[0], moment_of(function, streaming_loop))->stride, 16);
}

TEST(LoopOperands, WhatDoesNotMoveAndWhatIsLoadedAreTold) {
  Function function(reloaded, reloaded_end);
  const auto operands = loop_operands(function.anatomy, 0);
  ASSERT_EQ(operands.size(), 4U);
  EXPECT_TRUE(operands[0].one_place);   // the variable
  EXPECT_TRUE(operands[1].one_place);   // on the stack
  EXPECT_FALSE(operands[2].one_place);  // by a pointer that each iteration loads
  EXPECT_FALSE(place_of(operands[2], moment_of(function, reloaded_loop)));
}

}  // namespace
}  // namespace crosstalk::symbolizer::loop_body_test
