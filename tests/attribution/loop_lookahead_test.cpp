// SPDX-License-Identifier: Apache-2.0
// Lookaheads replayed on small functions, and the resulting amounts of an iteration.
#include "attribution/loops/loop_lookahead.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "profile/branch_trace.h"
#include "tests/attribution/loop_function.h"
#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::loop_lookahead_test {
namespace {

constexpr std::uint64_t base = 0x400000;
constexpr std::size_t instructions = 0, loads = 1, stores = 2, bytes = 3;

// branchy(): every iteration counts; some store 8 bytes.
constexpr std::uint64_t branchy = 0x100, skip = 0x102, store = 0x104, join = 0x107, latch = 0x10a;
constexpr std::array<std::uint8_t, 0xd> branchy_code = {0xa8, 0x01,        // 100: test al, 1
                                                        0x75, 0x03,        // 102: jne 107
                                                        0x48, 0x89, 0x07,  // 104: mov [rdi], rax
                                                        0x48, 0xff, 0xc0,  // 107: inc rax
                                                        0x75, 0xf4,        // 10a: jne 100
                                                        0xc3};             // 10c: ret
// caller() calls callee(), which loads 4 bytes, in a loop; nest() is a loop around an inner one.
constexpr std::uint64_t caller = 0x200, call_at = 0x200, caller_latch = 0x208, callee = 0x280, callee_ret = 0x282;
constexpr std::array<std::uint8_t, 0xb> caller_code = {0xe8, 0x7b, 0x00, 0x00, 0x00,  // 200: call 280
                                                       0x48, 0xff, 0xc8,              // 205: dec rax
                                                       0x75, 0xf6,                    // 208: jne 200
                                                       0xc3};                         // 20a: ret
constexpr std::array<std::uint8_t, 3> callee_code = {0x8b, 0x0f,                      // 280: mov ecx, [rdi]
                                                     0xc3};                           // 282: ret
constexpr std::uint64_t outer = 0x300, inner = 0x302, inner_latch = 0x305, outer_latch = 0x30a;
constexpr std::array<std::uint8_t, 0xd> nest_code = {0x31, 0xc0,        // 300: xor eax, eax
                                                     0x48, 0xff, 0xc0,  // 302: inc rax
                                                     0x75, 0xfb,        // 305: jne 302
                                                     0x48, 0xff, 0xc9,  // 307: dec rcx
                                                     0x75, 0xf4,        // 30a: jne 300
                                                     0xc3};             // 30c: ret

class LookaheadReplayTest : public testing::Test {
 protected:
  LookaheadReplayTest() {
    code_.anatomies = {{{0, branchy}, &branchy_.anatomy},
                       {{0, caller}, &caller_.anatomy},
                       {{0, callee}, &callee_.anatomy},
                       {{0, outer}, &nest_.anatomy}};
    code_.bytes = {
        {{0, branchy}, branchy_code}, {{0, caller}, caller_code}, {{0, callee}, callee_code}, {{0, outer}, nest_code}};
  }

  /// Puts a lookahead together from the transfers that it takes.
  class BranchTrace {
   public:
    explicit BranchTrace(std::uint64_t begin) : begin_(begin), line_(begin) {}
    BranchTrace& turn(std::uint64_t from, std::uint64_t to) {
      EXPECT_TRUE(writer_.turn(from - line_, to - from));
      line_ = to;
      return *this;
    }
    profile::LookaheadRow ends(std::uint64_t at, std::uint64_t head,
                               profile::LookaheadEnd end = profile::LookaheadEnd::whole) {
      writer_.end(at - line_);
      profile::LookaheadRow row;
      row.begin = base + begin_, row.head = head != 0 ? base + head : 0, row.end = end;
      row.branches.assign(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(writer_.size()));
      return row;
    }

   private:
    std::uint64_t begin_, line_;
    std::array<std::uint8_t, 4096> bytes_{};
    profile::BranchTraceWriter writer_{bytes_.data(), bytes_.size()};
  };

  /// Iterations of branchy() that skip the store, or do not.
  static profile::LookaheadRow lookahead_of(const std::vector<bool>& skips,
                                            profile::LookaheadEnd end = profile::LookaheadEnd::whole) {
    BranchTrace way(join);
    way.turn(latch, branchy);
    for (const bool skips_store : skips) {
      if (skips_store) {
        way.turn(skip, join);
      }
      way.turn(latch, branchy);
    }
    return way.ends(branchy, branchy, end);
  }

  [[nodiscard]] LoopLookahead loop(std::uint64_t header) const {
    const auto found = replay_.loops().find({0, header});
    return found != replay_.loops().end() ? found->second : LoopLookahead{};
  }

  std::vector<profile::ProcessRow> processes_{1};
  std::vector<profile::ThreadRow> threads_ = make_threads(1);
  std::vector<profile::ModuleRow> modules_{module_row("/bin/app", base, base + 0x1000, base)};
  AddressSpaces spaces_{processes_, modules_};
  Function branchy_{branchy, branchy_code}, caller_{caller, caller_code}, callee_{callee, callee_code},
      nest_{outer, nest_code};
  FakeCode code_;
  ProgramView view_{processes_, threads_, spaces_, code_};
  LookaheadReplay replay_{view_};
};

TEST_F(LookaheadReplayTest, CountsWhatEachIterationExecutes) {
  replay_.add(lookahead_of({true, false, false}));
  const LoopLookahead lookaheads = loop(branchy);
  ASSERT_EQ(lookaheads.lookaheads.size(), 1U);
  EXPECT_EQ(lookaheads.begun, 1U);
  EXPECT_EQ(lookaheads.cut, 0U);
  EXPECT_EQ(lookaheads.lookaheads[0].iterations, 3);
  EXPECT_EQ(lookaheads.lookaheads[0].work[instructions], 4 + 5 + 5);
  EXPECT_EQ(lookaheads.lookaheads[0].work[stores], 2);
  EXPECT_EQ(lookaheads.lookaheads[0].work[loads], 0);
  EXPECT_EQ(lookaheads.lookaheads[0].work[bytes], 16);
}

TEST_F(LookaheadReplayTest, OfAWalkThatIsCutTheWholeIterationsCount) {
  BranchTrace way(join);
  way.turn(latch, branchy).turn(skip, join).turn(latch, branchy);
  replay_.add(way.ends(store, branchy, profile::LookaheadEnd::value));  // in its second iteration
  const LoopLookahead lookaheads = loop(branchy);
  ASSERT_EQ(lookaheads.lookaheads.size(), 1U);
  EXPECT_EQ(lookaheads.cut, 1U);
  EXPECT_EQ(lookaheads.lookaheads[0].iterations, 1);
  EXPECT_EQ(lookaheads.lookaheads[0].work[instructions], 4);
}

TEST_F(LookaheadReplayTest, AWalkWithoutAHeadIsCutInTheLoopWhereItBegan) {
  BranchTrace way(branchy);
  replay_.add(way.ends(store, 0, profile::LookaheadEnd::code));
  EXPECT_EQ(loop(branchy).begun, 1U);
  EXPECT_EQ(loop(branchy).cut, 1U);
  EXPECT_TRUE(loop(branchy).lookaheads.empty());
}

TEST_F(LookaheadReplayTest, WhatALoopCallsIsPartOfIt) {
  BranchTrace way(0x205);
  way.turn(caller_latch, caller);
  for (int i = 0; i < 2; ++i) {
    way.turn(call_at, callee).turn(callee_ret, 0x205).turn(caller_latch, caller);
  }
  replay_.add(way.ends(caller, caller));
  const LoopLookahead lookaheads = loop(caller);
  ASSERT_EQ(lookaheads.lookaheads.size(), 1U);
  EXPECT_EQ(lookaheads.lookaheads[0].iterations, 2);
  EXPECT_EQ(lookaheads.lookaheads[0].work[instructions], 2 * 5);
  EXPECT_EQ(lookaheads.lookaheads[0].work[bytes], 2 * (4 + 8 + 8));  // the load, and the return address, both ways
}

TEST_F(LookaheadReplayTest, WhatIsOutsideTheLoopIsNot) {
  // The inner loop is its head; it is left and entered anew once.
  BranchTrace way(inner);
  way.turn(inner_latch, inner).turn(inner_latch, inner).turn(outer_latch, outer).turn(inner_latch, inner);
  replay_.add(way.ends(inner, inner));
  const LoopLookahead inside = loop(inner);
  ASSERT_EQ(inside.lookaheads.size(), 1U);
  EXPECT_EQ(inside.lookaheads[0].iterations, 3);
  EXPECT_EQ(inside.lookaheads[0].work[instructions], 3 * 2);
  EXPECT_TRUE(loop(outer).lookaheads.empty());  // it ended within an iteration of that
  EXPECT_EQ(loop(outer).begun, 1U);
}

TEST_F(LookaheadReplayTest, LoopsInsideArePartAndHaveTheirOwn) {
  BranchTrace way(0x307);
  way.turn(outer_latch, outer);
  way.turn(inner_latch, inner).turn(inner_latch, inner).turn(outer_latch, outer);
  replay_.add(way.ends(outer, outer));
  ASSERT_EQ(loop(outer).lookaheads.size(), 1U);
  EXPECT_EQ(loop(outer).lookaheads[0].iterations, 1);
  EXPECT_EQ(loop(outer).lookaheads[0].work[instructions], 1 + 3 * 2 + 2);
  ASSERT_EQ(loop(inner).lookaheads.size(), 1U);
  EXPECT_EQ(loop(inner).lookaheads[0].iterations, 3);
  EXPECT_EQ(loop(inner).lookaheads[0].work[instructions], 3 * 2);
}

TEST_F(LookaheadReplayTest, CodeThatIsNotAsItWasExecutedEndsTheReplay) {
  BranchTrace way(join);
  way.turn(latch, branchy).turn(latch, branchy).turn(latch, branchy).turn(latch - 1, branchy).turn(latch, branchy);
  replay_.add(way.ends(branchy, branchy));
  ASSERT_EQ(loop(branchy).lookaheads.size(), 1U);
  EXPECT_EQ(loop(branchy).lookaheads[0].iterations, 1);
  profile::LookaheadRow unknown_thread = lookahead_of({true});
  unknown_thread.thread = ThreadId{9};
  replay_.add(unknown_thread);
  profile::LookaheadRow elsewhere = lookahead_of({true});
  elsewhere.begin += 0x100000, elsewhere.head += 0x100000;
  replay_.add(elsewhere);
  EXPECT_EQ(loop(branchy).lookaheads.size(), 1U);
}

/// Makes lookaheads of 32 iterations; an iteration has 8 bytes with a chance of 1 in 4.
LoopLookahead random_lookaheads(std::size_t lookaheads, unsigned seed) {
  std::mt19937 random(seed);
  std::bernoulli_distribution stores_now(0.25);
  LoopLookahead loop;
  loop.begun = lookaheads;
  for (std::size_t i = 0; i < lookaheads; ++i) {
    LookaheadIterations lookahead{32, {}};
    for (int k = 0; k < 32; ++k) {
      lookahead.work[bytes] += stores_now(random) ? 8 : 0;
      lookahead.work[instructions] += 4;
    }
    loop.lookaheads.push_back(lookahead);
  }
  return loop;
}

TEST(LookaheadAmount, IntervalsHoldTheTruthAsOftenAsTheySay) {
  int held = 0;
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    const LookaheadAmount amount = lookahead_amount(random_lookaheads(20, seed), bytes);
    ASSERT_TRUE(amount.mean);
    held += amount.ci95.low <= 2 && 2 <= amount.ci95.high ? 1 : 0;
  }
  EXPECT_GE(held, 930);
  EXPECT_LE(held, 980);
}

TEST(LookaheadAmount, WhereAllAreAlikeARareWayIsAllowedFor) {
  const LookaheadAmount amount = lookahead_amount(random_lookaheads(20, 1), instructions);
  ASSERT_TRUE(amount.mean);
  EXPECT_DOUBLE_EQ(*amount.mean, 4);
  EXPECT_NEAR(amount.ci95.high - 4, 4 * 3.0 / 640, 1e-9);
  EXPECT_EQ(amount.lookaheads, 20U);
}

TEST(LookaheadAmount, FewWalksOrManyThatAreCutGiveNone) {
  EXPECT_FALSE(lookahead_amount(random_lookaheads(7, 1), bytes).mean);
  EXPECT_NE(lookahead_amount(random_lookaheads(7, 1), bytes).unknown.find("too few"), std::string::npos);
  EXPECT_FALSE(lookahead_amount({}, bytes).mean);
  LoopLookahead cut = random_lookaheads(40, 1);
  cut.cut = 2;
  EXPECT_TRUE(lookahead_amount(cut, bytes).mean);
  cut.cut = 3;
  EXPECT_FALSE(lookahead_amount(cut, bytes).mean);
  EXPECT_NE(lookahead_amount(cut, bytes).unknown.find("cannot be followed"), std::string::npos);
  LoopLookahead unfixed = random_lookaheads(40, 1);
  unfixed.unfixed[bytes] = true;
  EXPECT_FALSE(lookahead_amount(unfixed, bytes).mean);
  EXPECT_TRUE(lookahead_amount(unfixed, instructions).mean);
}

}  // namespace
}  // namespace crosstalk::attribution::test::loop_lookahead_test
