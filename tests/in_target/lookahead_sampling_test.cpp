// SPDX-License-Identifier: Apache-2.0
// Tests which samples are followed by a lookahead, and its records: a loop that never runs, with a ring of the test's
// own (fake_kernel.h).
#include "collectors/in_target/sampling/lookahead_sampling.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/system_calls.h"
#include "profile/branch_trace.h"
#include "tests/in_target/fake_kernel.h"

namespace crosstalk::in_target::lookahead_sampling_test {
namespace {

constexpr std::size_t loops = 128;   // a page: code around an instruction is read as far as its page goes
constexpr std::size_t loop_at = 16;  // in each loop's 32 bytes
using LoopCode = std::array<std::uint8_t, 32>;

/// 1: add (%rdi),%rax; add $8,%rdi; cmp %rsi,%rdi; jne 1b; ret
constexpr std::array<LoopCode, loops> make_loops() {
  constexpr std::array<std::uint8_t, 13> code = {0x48, 0x03, 0x07, 0x48, 0x83, 0xc7, 0x08,
                                                 0x48, 0x39, 0xf7, 0x75, 0xf4, 0xc3};
  std::array<LoopCode, loops> all{};
  for (LoopCode& loop : all) {
    loop.fill(0x90);
    for (std::size_t i = 0; i < code.size(); ++i) {
      loop[loop_at + i] = code[i];
    }
  }
  return all;
}
alignas(4096) constinit const std::array<LoopCode, loops> code = make_loops();
constinit const std::array<std::uint64_t, 4096> numbers{};

class LookaheadSampling : public testing::Test {
 protected:
  LookaheadSampling() {
    prepare_to_look_ahead();
    runtime().config.lookahead = 1;
    runtime().budget.earn(1'000'000'000'000);  // more than all that follows may cost
  }
  static std::uint64_t begin_of(std::size_t loop) { return reinterpret_cast<std::uint64_t>(&code.at(loop)[loop_at]); }
  static collectors::Observation sample_in(std::size_t loop) {
    collectors::Observation seen;
    seen.time_ns = 4711;
    seen.ip = seen.registers[Register::rip] = begin_of(loop);
    seen.registers[Register::rdi] = reinterpret_cast<std::uint64_t>(numbers.data());
    seen.registers[Register::rsi] = reinterpret_cast<std::uint64_t>(numbers.data() + numbers.size());
    seen.registers[Register::rsp] = reinterpret_cast<std::uint64_t>(&seen);
    return seen;
  }
  /// Returns the number of lookaheads in `samples` samples.
  std::uint32_t made(std::uint32_t samples, std::size_t loop) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < samples; ++i) {
      count += perhaps_look_ahead(self_, sample_in(loop)) != 0 ? 1 : 0;
    }
    return count;
  }
  std::vector<std::vector<std::byte>> written() {
    auto all = kernel_.records(self_);
    for (const auto& bytes : all) {
      EXPECT_EQ(test::of_type<profile::Lookahead>({bytes}, profile::RecordType::lookahead).size(), 1U);
    }
    return all;
  }

  test::FakeKernel kernel_;
  ThreadState& self_ = kernel_.add_thread();
  static inline std::size_t next_loop_ = 0;  // a test's own: what is known of places outlives it
};

TEST_F(LookaheadSampling, TheRecordTellsTheLoopAndItsWay) {
  const std::size_t loop = next_loop_++;
  std::uint64_t took_ns = 0;
  for (int i = 0; i < 100 && took_ns == 0; ++i) {
    took_ns = perhaps_look_ahead(self_, sample_in(loop));
  }
  ASSERT_GT(took_ns, 0U);
  const auto all = written();
  ASSERT_EQ(all.size(), 1U);
  const auto found = test::of_type<profile::Lookahead>(all, profile::RecordType::lookahead).at(0);
  EXPECT_EQ(found.time_ns, 4711U);
  EXPECT_EQ(found.begin, begin_of(loop));
  EXPECT_EQ(found.head, begin_of(loop));
  EXPECT_EQ(found.end, profile::LookaheadEnd::whole);
  EXPECT_EQ(found.instructions, 4 * found.passages);
  EXPECT_GT(found.passages, 10U);
  EXPECT_EQ(found.cost_ns, took_ns);
  const auto* way = reinterpret_cast<const std::uint8_t*>(all[0].data() + sizeof(profile::Lookahead));
  const auto lines = profile::unpack_branch_trace({way, found.header.tail}, found.begin);
  ASSERT_TRUE(lines.has_value());
  EXPECT_EQ(lines->front().begin, begin_of(loop));
  EXPECT_EQ(lines->front().last, begin_of(loop) + 10) << "the jump back";
}

TEST_F(LookaheadSampling, OneInTwoSamplesIsFollowedUntilAPlaceIsKnown) {
  // Each at a place of its own, none known: chance alone decides. Five deviations of a fair coin on each side.
  std::uint32_t count = 0;
  constexpr std::uint32_t places = 40;
  const std::size_t first = next_loop_;
  for (std::uint32_t i = 0; i < places; ++i) {
    count += made(1, next_loop_++);
  }
  EXPECT_GT(count, 4U);
  EXPECT_LT(count, 36U);
  EXPECT_EQ(written().size(), count);
  // Once it has been looked at often enough, one in 32 is.
  made(40, first);
  EXPECT_LT(made(640, first), 64U);
  EXPECT_GT(made(640, first), 0U) << "now and then it is looked at all the same";
}

TEST_F(LookaheadSampling, NoneWhereTheSettingsWantNone) {
  runtime().config.lookahead = 0;
  EXPECT_EQ(made(100, next_loop_++), 0U);
  EXPECT_TRUE(written().empty());
}

TEST_F(LookaheadSampling, NoneThatTheBudgetDoesNotAllow) {
  runtime().budget.clear();
  runtime().budget.look_ahead(1'000'000'000);
  EXPECT_EQ(made(100, next_loop_++), 0U);
}

TEST_F(LookaheadSampling, TheyEndWithTheirShareOfTheBudget) {
  runtime().budget.clear();
  runtime().budget.earn(1'600'000'000);  // 3 % of it are for observing, of them a tenth for lookaheads: 4.8 ms
  const std::size_t loop = next_loop_++;
  std::uint64_t spent_ns = 0;
  for (int i = 0; i < 200'000; ++i) {
    spent_ns += perhaps_look_ahead(self_, sample_in(loop));
  }
  EXPECT_GT(spent_ns, 1'000'000U);
  EXPECT_LT(spent_ns, 20'000'000U);
}

TEST_F(LookaheadSampling, ALookaheadThatCanNotBeRecordedIsCountedAsLost) {
  self_.ring.detach();
  const std::size_t loop = next_loop_++;
  EXPECT_GT(made(20, loop), 0U) << "it took its time";
  EXPECT_TRUE(written().empty());
}

}  // namespace
}  // namespace crosstalk::in_target::lookahead_sampling_test
