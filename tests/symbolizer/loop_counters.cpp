// SPDX-License-Identifier: Apache-2.0
// Counters, work and trip counts of loops in small assembled functions.
#include "symbolizer/loops/loop_counters.h"

#include <gtest/gtest.h>

#include <set>

#include "symbolizer/loops/loop_anatomy.h"

// Each function is analysed as bytes and never run. Labels `at_...` are places where a thread is interrupted.
asm(R"(
.text
.macro begin name
  .globl \name
  \name :
.endm
begin loop_up
  xor %eax, %eax
loop_up_header: .globl loop_up_header
  mov (%rdi,%rax,8), %rdx
  add $2, %rax
loop_up_after: .globl loop_up_after
  cmp %rax, %rsi
  jne loop_up_header
  ret
begin loop_up_end
begin loop_roots
loop_roots_header: .globl loop_roots_header
  movslq 0x2de4(%rip), %rax
  pxor %xmm0, %xmm0
  imul %rbx, %rax
  cvtsi2sd %rax, %xmm0
  ucomisd %xmm0, %xmm2
  ja loop_roots_rare
  sqrtsd %xmm0, %xmm0
loop_roots_latch:
  add $1, %rbx
  addsd %xmm0, %xmm1
  cmp $0x11e1a300, %rbx
  jne loop_roots_header
  ret
loop_roots_rare:
  pxor %xmm2, %xmm2
  jmp loop_roots_latch
begin loop_roots_end
begin loop_either
loop_either_header: .globl loop_either_header
  mov 0x2000(%rip), %eax
  test %eax, %eax
  je loop_either_pause
  mov 0x3000(%rip), %eax
  test %eax, %eax
  jne loop_either_left
loop_either_pause:
  pause
  jmp loop_either_header
loop_either_left:
  ret
begin loop_either_end
begin loop_lea
loop_lea_header: .globl loop_lea_header
  lea -3(%ecx), %ecx
  lea 8(%rdi), %rdx
  movsd (%rdi), %xmm0
  mulsd %xmm1, %xmm0
  mov %rdx, %rdi
loop_lea_after: .globl loop_lea_after
  test %ecx, %ecx
  jg loop_lea_header
  ret
begin loop_lea_end
begin loop_stride
loop_stride_header: .globl loop_stride_header
  add %rdx, %rax
  vaddpd (%rax), %ymm0, %ymm0
  cmp %rsi, %rax
  jb loop_stride_header
  ret
begin loop_stride_end
begin loop_ways
loop_ways_header: .globl loop_ways_header
  test $1, %dl
  je loop_ways_even
  add $1, %rax
  inc %rbx
  jmp loop_ways_latch
loop_ways_even:
  add $1, %rax
  mov %rdx, %rbx
loop_ways_latch:
  cmp $100, %rax
  jne loop_ways_header
  ret
begin loop_ways_end
begin loop_call
loop_call_header: .globl loop_call_header
  call loop_up
  add $1, %rbx
  add $1, %rcx
  cmp $100, %rbx
  jne loop_call_header
  ret
begin loop_call_end
begin nest
nest_outer: .globl nest_outer
  xor %eax, %eax
nest_inner: .globl nest_inner
  movups (%rdi,%rax), %xmm0
  movups %xmm0, (%rdx,%rax)
  add $16, %rax
  cmp %rsi, %rax
  jne nest_inner
  add %rsi, %rdi
  sub $1, %rcx
  jne nest_outer
  ret
begin nest_end
begin skipped
skipped_outer:
  testb $1, (%rdi)
  je skipped_over
  xor %eax, %eax
skipped_inner: .globl skipped_inner
  add $16, %rax
  cmp %rsi, %rax
  jne skipped_inner
skipped_over:
  inc %rdi
  sub $1, %rcx
  jne skipped_outer
  ret
begin skipped_end
begin guarded
guarded_outer:
  mov $0, %eax
  test %rsi, %rsi
  je guarded_over
  nop
guarded_inner: .globl guarded_inner
  add $16, %rax
  cmp %rsi, %rax
  jne guarded_inner
guarded_over:
  sub $1, %rcx
  jne guarded_outer
  ret
begin guarded_end
begin moving
moving_outer:
  xor %eax, %eax
  cmp %rsi, %rcx
  jb moving_over
moving_inner: .globl moving_inner
  add $16, %rax
  cmp %rsi, %rax
  jne moving_inner
moving_over:
  sub $1, %rcx
  jne moving_outer
  ret
begin moving_end
begin exits
exits_outer:
  mov %rdi, %rax
exits_inner: .globl exits_inner
  cmp (%rax), %rdx
  je exits_out
  add $8, %rax
  cmp %rax, %rsi
  jne exits_inner
  dec %rcx
  jne exits_outer
exits_out:
  ret
begin exits_end
begin push_loop
push_loop_header: .globl push_loop_header
  push %rbx
push_loop_inside: .globl push_loop_inside
  xor %ebx, %ebx
  pop %rbx
  dec %ecx
  jne push_loop_header
  ret
begin push_loop_end
)");

extern "C" {
extern const std::uint8_t loop_up[], loop_up_header[], loop_up_after[], loop_up_end[], loop_roots[],
    loop_roots_header[], loop_roots_end[], loop_either[], loop_either_header[], loop_either_end[];
extern const std::uint8_t loop_lea[], loop_lea_header[], loop_lea_after[], loop_lea_end[];
extern const std::uint8_t loop_stride[], loop_stride_header[], loop_stride_end[];
extern const std::uint8_t loop_ways[], loop_ways_header[], loop_ways_end[];
extern const std::uint8_t loop_call[], loop_call_header[], loop_call_end[];
extern const std::uint8_t nest[], nest_outer[], nest_inner[], nest_end[];
extern const std::uint8_t skipped[], skipped_inner[], skipped_end[];
extern const std::uint8_t guarded[], guarded_inner[], guarded_end[];
extern const std::uint8_t moving[], moving_inner[], moving_end[];
extern const std::uint8_t exits[], exits_inner[], exits_end[];
extern const std::uint8_t push_loop[], push_loop_header[], push_loop_inside[], push_loop_end[];
}

namespace crosstalk::symbolizer::loop_counters_test {
namespace {

std::uint64_t address(const std::uint8_t* label) { return reinterpret_cast<std::uint64_t>(label); }

constexpr auto index(Register reg) { return static_cast<std::size_t>(reg); }

class Function {
 public:
  Function(const std::uint8_t* begin, const std::uint8_t* end)
      : code_(begin, end),
        read_([this](std::uint64_t at) { return code_.subspan(at - address(code_.data())); }),
        flow_(control_flow({address(begin), address(end)}, code_, read_, [](std::uint64_t) { return false; })),
        anatomy(flow_, read_) {}

  [[nodiscard]] LoopMoment moment(const std::uint8_t* at, const Registers& registers, std::uint32_t loop) {
    const auto reader = anatomy.counters(loop).reader_at(address(at));
    EXPECT_TRUE(reader);
    return reader ? reader->read(registers) : LoopMoment{};
  }
  [[nodiscard]] LoopMoment moment(const std::uint8_t* at, const Registers& registers) {
    return moment(at, registers, anatomy.innermost(address(at)));
  }
  [[nodiscard]] IterationWork work(const std::uint8_t* at) { return anatomy.work(anatomy.innermost(address(at))); }

 private:
  std::span<const std::uint8_t> code_;
  ReadBytes read_;
  ControlFlow flow_;

 public:
  LoopAnatomy anatomy;
};

std::set<Register> counters_of(const LoopMoment& moment) {
  std::set<Register> found;
  for (std::size_t i = 0; i < general_registers; ++i) {
    if (moment.has(moment.counters, i)) {
      found.insert(static_cast<Register>(i));
    }
  }
  return found;
}

void expect_work(const IterationWork& work, WorkKind kind, double amount) {
  ASSERT_TRUE(work.unknown.empty()) << work.unknown;
  const auto& range = work.own.at(static_cast<std::size_t>(kind));
  ASSERT_TRUE(range) << static_cast<int>(kind);
  EXPECT_EQ(range->least, amount) << static_cast<int>(kind);
  EXPECT_EQ(range->most, amount) << static_cast<int>(kind);
}

TEST(LoopCounters, AnIndexIsWhatItWasAtTheHeader) {
  Function function(loop_up, loop_up_end);
  Registers registers;
  registers[Register::rax] = 40;
  const LoopMoment at_header = function.moment(loop_up_header, registers);
  EXPECT_EQ(counters_of(at_header), std::set{Register::rax});
  EXPECT_EQ(at_header.step[index(Register::rax)], 2);
  EXPECT_EQ(at_header.value[index(Register::rax)], 40U);
  const LoopMoment behind_the_add = function.moment(loop_up_after, registers);
  EXPECT_EQ(behind_the_add.value[index(Register::rax)], 38U);
  EXPECT_TRUE(at_header.has(at_header.fixed, index(Register::rsi)));
  EXPECT_TRUE(at_header.has(at_header.fixed, index(Register::rsp)));
  EXPECT_FALSE(at_header.has(at_header.fixed, index(Register::rdx)));  // loaded
}

TEST(LoopCounters, ABranchRoundSomeInstructionsIsNoEndThatIsWaitedFor) {
  Function roots(loop_roots, loop_roots_end);
  EXPECT_EQ(roots.anatomy.waits_at(0, address(loop_roots_header)), Waiting::no);
  Function either(loop_either, loop_either_end);
  EXPECT_EQ(either.anatomy.waits_at(0, address(loop_either_header)), Waiting::surely);
}

TEST(LoopCounters, OutsideTheLoopAndInsideAnInstructionThereIsNone) {
  Function function(loop_up, loop_up_end);
  const LoopCounters& counters = function.anatomy.counters(0);
  EXPECT_FALSE(counters.reader_at(address(loop_up)));
  EXPECT_FALSE(counters.reader_at(address(loop_up_header) + 1));
}

TEST(LoopCounters, LeaCountsDownInHalfARegisterAndAPointerMovesThroughAnother) {
  Function function(loop_lea, loop_lea_end);
  Registers registers;
  registers[Register::rcx] = 0xffffffff00000005;  // the upper half is stale where lea has not been yet
  registers[Register::rdi] = registers[Register::rdx] = 0x1000;
  const LoopMoment moment = function.moment(loop_lea_after, registers);
  EXPECT_EQ(counters_of(moment), (std::set{Register::rcx, Register::rdi}));
  EXPECT_TRUE(moment.has(moment.narrow, index(Register::rcx)));
  EXPECT_FALSE(moment.has(moment.narrow, index(Register::rdi)));
  EXPECT_EQ(moment.step[index(Register::rcx)], -3);
  EXPECT_EQ(static_cast<std::uint32_t>(moment.value[index(Register::rcx)]), 8U);
  EXPECT_EQ(moment.step[index(Register::rdi)], 8);
  EXPECT_EQ(moment.value[index(Register::rdi)], 0xff8U);
}

TEST(LoopCounters, AStepMayLieInARegister) {
  Function function(loop_stride, loop_stride_end);
  Registers registers;
  registers[Register::rdx] = 24;
  EXPECT_EQ(function.moment(loop_stride_header, registers).step[index(Register::rax)], 24);
  registers[Register::rdx] = static_cast<std::uint64_t>(-5);
  EXPECT_EQ(function.moment(loop_stride_header, registers).step[index(Register::rax)], -5);
  registers[Register::rdx] = 0;
  EXPECT_TRUE(counters_of(function.moment(loop_stride_header, registers)).empty());
}

TEST(LoopCounters, EveryWayRoundMustAddTheSame) {
  Function function(loop_ways, loop_ways_end);
  EXPECT_EQ(counters_of(function.moment(loop_ways_header, {})), std::set{Register::rax});
}

TEST(LoopCounters, ACalleeKeepsSomeRegistersOnly) {
  Function function(loop_call, loop_call_end);
  EXPECT_EQ(counters_of(function.moment(loop_call_header, {})), std::set{Register::rbx});
  EXPECT_EQ(function.work(loop_call_header).unknown, "it calls functions");
}

TEST(LoopCounters, ACounterOfTheLoopAroundIsReadInsideTheInnerOne) {
  Function function(nest, nest_end);
  Registers registers;
  registers[Register::rcx] = 7;
  registers[Register::rsi] = 4096;
  const std::uint32_t inner = function.anatomy.innermost(address(nest_inner));
  const std::uint32_t outer = function.anatomy.parent(inner);
  ASSERT_LT(outer, function.anatomy.loops());
  EXPECT_EQ(counters_of(function.moment(nest_inner, registers, inner)), std::set{Register::rax});
  const LoopMoment around = function.moment(nest_inner, registers, outer);
  EXPECT_EQ(counters_of(around), (std::set{Register::rcx, Register::rdi}));
  EXPECT_EQ(around.value[index(Register::rcx)], 7U);
  EXPECT_EQ(around.step[index(Register::rdi)], 4096);
}

TEST(LoopCounters, WhatIsPushedIsNotFollowedButTheStackIs) {
  Function function(push_loop, push_loop_end);
  Registers registers;
  registers[Register::rsp] = 0x7000;
  const LoopMoment inside = function.moment(push_loop_inside, registers);
  EXPECT_EQ(inside.value[index(Register::rsp)], 0x7008U);
  EXPECT_EQ(counters_of(inside), std::set{Register::rcx});
  EXPECT_FALSE(inside.has(inside.fixed, index(Register::rbx)));
}

TEST(TripCount, IsWhatTheRegistersOfTheLoopAroundSay) {
  Function function(nest, nest_end);
  const std::uint32_t inner = function.anatomy.innermost(address(nest_inner));
  const auto& trips = function.anatomy.trips(inner);
  ASSERT_TRUE(trips);
  Registers registers;
  registers[Register::rax] = 64;
  registers[Register::rsi] = 4096;
  const auto moment = [&] { return function.moment(nest_inner, registers, function.anatomy.parent(inner)); };
  EXPECT_EQ(trips->at(moment()), 256);
  registers[Register::rsi] = 16;
  EXPECT_EQ(trips->at(moment()), 1);
  registers[Register::rsi] = 17;  // would wrap round
  EXPECT_FALSE(trips->at(moment()));
}

TEST(TripCount, SaysHowManyIterationsOfAVisitAreComplete) {
  Function function(nest, nest_end);
  const std::uint32_t inner = function.anatomy.innermost(address(nest_inner));
  const auto& trips = function.anatomy.trips(inner);
  ASSERT_TRUE(trips);
  const auto done = [&](std::uint64_t rax, std::uint64_t rsi) {
    Registers registers;
    registers[Register::rax] = rax;
    registers[Register::rsi] = rsi;
    return trips->done(function.moment(nest_inner, registers, inner),
                       function.moment(nest_inner, registers, function.anatomy.parent(inner)));
  };
  EXPECT_EQ(done(0, 4096), 0);
  EXPECT_EQ(done(64, 4096), 4);
  EXPECT_EQ(done(4080, 4096), 255);
  EXPECT_FALSE(done(65, 4096));    // within no iteration
  EXPECT_FALSE(done(4128, 4096));  // behind the last one
}

TEST(TripCount, IsUnknownWithSeveralExits) {
  Function function(exits, exits_end);
  EXPECT_FALSE(function.anatomy.trips(function.anatomy.innermost(address(exits_inner))));
}

TEST(TripCount, IsUnknownWhereTheLoopAroundMaySkipTheInnerOne) {
  Function function(skipped, skipped_end);
  EXPECT_FALSE(function.anatomy.trips(function.anatomy.innermost(address(skipped_inner))));
}

TEST(TripCount, IsKnownBehindAGuardThatAsksWhatTheLoopAroundLeavesAlone) {
  Function function(guarded, guarded_end);
  const std::uint32_t inner = function.anatomy.innermost(address(guarded_inner));
  const auto& trips = function.anatomy.trips(inner);
  ASSERT_TRUE(trips);
  Registers registers;
  registers[Register::rsi] = 4096;
  EXPECT_EQ(trips->at(function.moment(guarded_inner, registers, function.anatomy.parent(inner))), 256);
}

TEST(TripCount, IsUnknownBehindAGuardThatAsksWhatTheLoopAroundChanges) {
  Function function(moving, moving_end);
  EXPECT_FALSE(function.anatomy.trips(function.anatomy.innermost(address(moving_inner))));
}

TEST(TripCount, ConditionsMeetWhereArithmeticSays) {
  const auto rounds = [](TripCount::Until until, std::int64_t from, std::int64_t by, bool first = false) {
    return TripCount{Linear::number(static_cast<std::uint64_t>(from)), Linear::number(static_cast<std::uint64_t>(by)),
                     until, first}
        .at({});
  };
  using Until = TripCount::Until;
  EXPECT_EQ(rounds(Until::zero, -10, 2), 6);
  EXPECT_EQ(rounds(Until::zero, -10, 2, true), 5);
  EXPECT_FALSE(rounds(Until::zero, -9, 2));
  EXPECT_FALSE(rounds(Until::zero, 10, 2));
  EXPECT_EQ(rounds(Until::not_negative, -9, 2, true), 5);
  EXPECT_EQ(rounds(Until::positive, -8, 2, true), 5);
  EXPECT_EQ(rounds(Until::not_positive, 9, -2, true), 5);
  EXPECT_EQ(rounds(Until::negative, 8, -2, true), 5);
  EXPECT_EQ(rounds(Until::not_negative, 3, -2, true), 0);
  EXPECT_FALSE(rounds(Until::not_negative, -9, -2));
  EXPECT_FALSE(rounds(Until::zero, 5, 0));
}

TEST(IterationWork, CountsWhatTheBodyDoes) {
  Function scalar(loop_lea, loop_lea_end);
  expect_work(scalar.work(loop_lea_header), WorkKind::instructions, 7);
  expect_work(scalar.work(loop_lea_header), WorkKind::loads, 1);
  expect_work(scalar.work(loop_lea_header), WorkKind::stores, 0);
  expect_work(scalar.work(loop_lea_header), WorkKind::bytes, 8);
  expect_work(scalar.work(loop_lea_header), WorkKind::flops, 1);
  Function vector(loop_stride, loop_stride_end);
  expect_work(vector.work(loop_stride_header), WorkKind::bytes, 32);
  expect_work(vector.work(loop_stride_header), WorkKind::flops, 4);
}

TEST(IterationWork, IsARangeWhereWaysDiffer) {
  Function function(loop_ways, loop_ways_end);
  const IterationWork work = function.work(loop_ways_header);
  ASSERT_TRUE(work.own.at(0));
  EXPECT_EQ(work.own.at(0)->least, 6);
  EXPECT_EQ(work.own.at(0)->most, 7);
}

TEST(IterationWork, OfALoopAroundIsWithoutTheInnerOnes) {
  Function function(nest, nest_end);
  const std::uint32_t outer = function.anatomy.innermost(address(nest_outer));
  expect_work(function.anatomy.work(outer), WorkKind::instructions, 4);
  expect_work(function.anatomy.work(outer), WorkKind::loads, 0);
}

}  // namespace
}  // namespace crosstalk::symbolizer::loop_counters_test
