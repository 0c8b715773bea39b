// SPDX-License-Identifier: Apache-2.0
// Positions of loops in their data, from moments of loops that sweep, revisit blocks, or follow pointers.
#include <gtest/gtest.h>

#include <cmath>

#include "attribution/busy/loop_standing.h"
#include "attribution/busy/stream_samples.h"

namespace crosstalk::attribution::loop_streams_test {
namespace {

constexpr auto rax = static_cast<std::size_t>(Register::rax);
constexpr auto rdi = static_cast<std::size_t>(Register::rdi);
constexpr auto rsi = static_cast<std::size_t>(Register::rsi);
constexpr std::uint64_t array_bytes = 1U << 20U;
constexpr double per_s = 1e8;  // iterations

/// Two arrays at rdi and rsi, index of bytes in rax.
symbolizer::LoopMoment moment(double position) {
  symbolizer::LoopMoment m;
  m.fixed = 1U << rdi | 1U << rsi;
  m.counters = 1U << rax;
  m.value[rdi] = 0x10000000, m.value[rsi] = 0x20000000;
  m.value[rax] = static_cast<std::uint64_t>(position) % array_bytes / 8 * 8;
  m.step[rax] = 8;
  return m;
}

symbolizer::LoopOperand operand(std::uint64_t instruction, std::size_t base, std::uint64_t displacement, bool stores) {
  symbolizer::LoopOperand o;
  o.instruction = instruction;
  o.width = 8;
  o.loads = !stores, o.stores = stores;
  o.form = symbolizer::Linear::number(displacement);
  o.form->factor[base] = o.form->factor[rax] = 1;
  return o;
}

const std::vector<symbolizer::LoopOperand> triad = {operand(0x400, rdi, 0, false), operand(0x404, rdi, 8, false),
                                                    operand(0x408, rsi, 0, true)};

/// Returns the pairs of one thread that is at `position(t)` at second t, sampled each 250 us.
template <class Position>
LoopPairs pairs_of(const Position& position) {
  constexpr double interval = 250e-6;
  LoopPairs loop;
  for (int i = 0; i < 200; ++i) {
    loop.pairs.push_back({3, interval, moment(position(i * interval)), moment(position((i + 1) * interval))});
  }
  return loop;
}

TEST(LoopStreams, ASweepGoesOverAllOfItsData) {
  const LoopStreams found = streams_of(triad, pairs_of([](double t) { return t * per_s * 8; }), per_s);
  EXPECT_EQ(found.unknown, "");
  ASSERT_EQ(found.streams.size(), 3U);
  EXPECT_EQ(found.streams[0].stride, 8);
  EXPECT_NEAR(static_cast<double>(found.streams[0].high - found.streams[0].low), array_bytes, 0.1 * array_bytes);
  EXPECT_GE(found.streams[0].low, 0x10000000U);
  EXPECT_TRUE(found.streams[2].stores && !found.streams[2].loads);
  EXPECT_EQ(found.streams[1].position - found.streams[0].position, 8U);
}

TEST(LoopStreams, SoDoesOneThatIsManyTimesThroughBetweenSamples) {
  const LoopStreams found = streams_of(triad, pairs_of([](double t) { return t * per_s * 8 * 97; }), 97 * per_s);
  EXPECT_EQ(found.unknown, "");
}

TEST(LoopStreams, BlocksThatAreGoneOverAgainAreNoSweep) {
  // A block of 4 KiB for 20 ms, then the next.
  const auto blocked = [](double t) { return std::floor(t / 0.02) * 65536 + std::fmod(t * per_s * 8, 4096); };
  const LoopStreams found = streams_of(triad, pairs_of(blocked), per_s);
  EXPECT_EQ(found.unknown, "it goes over parts of its data again and again");
}

TEST(LoopStreams, AccessesToOnePlaceAreNone) {
  std::vector<symbolizer::LoopOperand> operands = {operand(0x400, rdi, 0, false)};
  operands[0].one_place = true;
  const LoopStreams found = streams_of(operands, pairs_of([](double t) { return t; }), per_s);
  EXPECT_EQ(found.unknown, "");
  EXPECT_TRUE(found.streams.empty());
}

TEST(LoopStreams, WhatIsLoadedIsWhereSamplesSawIt) {
  std::vector<symbolizer::LoopOperand> operands = {operand(0x400, rdi, 0, false)};
  operands[0].form.reset();
  LoopPairs loop = pairs_of([](double t) { return t; });
  EXPECT_NE(streams_of(operands, loop, per_s).unknown, "");
  loop.ranges[{3, 0x400}] = {0x7000, 0x9000, 50};
  loop.ranges[{4, 0x400}] = {0x1000, 0xf000, 50};  // another thread's
  const LoopStreams found = streams_of(operands, loop, per_s);
  EXPECT_EQ(found.unknown, "");
  ASSERT_EQ(found.scattered.size(), 1U);
  EXPECT_EQ(found.scattered[0].low, 0x7000U);
  EXPECT_EQ(found.scattered[0].high, 0x9000U);
}

TEST(LongStrides, AreSeenOfThreadsThatLiveForOneRound) {
  LoopPairs loop = pairs_of([](double t) { return t * per_s * 8; });
  loop.pairs.resize(12);
  for (std::size_t i = 0; i < loop.pairs.size(); ++i) {
    loop.pairs[i].thread = static_cast<std::uint32_t>(i);  // one pair of each
    loop.pairs[i].from.step[rax] = loop.pairs[i].to.step[rax] = 4096;
  }
  EXPECT_NE(streams_of(triad, loop, per_s).unknown, "");
  const auto found = long_strides(triad, loop);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->part, 1);
  EXPECT_DOUBLE_EQ(found->stride_bytes, 4096);
  EXPECT_GT(found->lines_bytes, 64 * 8);
  EXPECT_FALSE(long_strides(triad, pairs_of([](double t) { return t * per_s * 8; }))) << "adjacent elements";
  loop.pairs[3].from.step[rax] = loop.pairs[3].to.step[rax] = 8;
  EXPECT_FALSE(long_strides(triad, loop)) << "no constant stride";
  loop.pairs.resize(2);
  EXPECT_FALSE(long_strides(triad, loop)) << "too few pairs";
}

TEST(LoopStreams, FewPairsTellNothing) {
  LoopPairs loop = pairs_of([](double t) { return t; });
  loop.pairs.resize(5);
  EXPECT_NE(streams_of(triad, loop, per_s).unknown, "");
}

TEST(LoopStanding, LooksBackOverWhatWasFinished) {
  using Code = std::vector<std::uint8_t>;
  const Code load{0x48, 0x8b, 0x07};       // mov (%rdi), %rax
  const Code store{0x48, 0x89, 0x07};      // mov %rax, (%rdi)
  const Code add{0xf2, 0x0f, 0x58, 0xc1};  // addsd %xmm1, %xmm0
  const Code count{0x48, 0xff, 0xc9};      // dec %rcx
  const Code jump{0x75, 0xf0};             // jne
  symbolizer::Way way;
  way.code = {load, add, store, count, jump};
  using symbolizer::WaitsFor;
  EXPECT_EQ(stands_at(way, 0), WaitsFor::fpu);  // over the jump, the count and the store
  EXPECT_EQ(stands_at(way, 1), WaitsFor::load);
  EXPECT_EQ(stands_at(way, 2), WaitsFor::fpu);
  way.code = {store, count, jump};
  EXPECT_EQ(stands_at(way, 0), WaitsFor::store);
  way.code = {count, jump};
  EXPECT_EQ(stands_at(way, 1), WaitsFor::nothing);
}

}  // namespace
}  // namespace crosstalk::attribution::loop_streams_test
