// SPDX-License-Identifier: Apache-2.0
// Compares lookaheads with single-stepped functions: the thread must execute the predicted instructions. Also tests, on
// code made for it, where lookaheads begin to count and why they end.
#include "collectors/access/lookahead.h"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <map>
#include <vector>

#include "profile/branch_trace.h"
#include "tests/in_target/access_fixtures.h"
#include "tests/in_target/access_trace.h"

namespace crosstalk::test::lookahead_test {
namespace {

using in_target::AccessFinder;
using in_target::CodeReader;
using in_target::Lookahead;
using in_target::LookaheadLimits;
using in_target::LookaheadMemory;
using in_target::LookaheadState;
using profile::LookaheadEnd;

// In static storage, which is zero.
AccessFinder finder;
LookaheadState state;

struct Made {
  Lookahead walk;
  std::vector<profile::Straight> lines;
};

Made make_walk(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, const CodeReader& reader,
               const LookaheadLimits& limits = {}, const in_target::VectorFrame& vectors = {}) {
  static const bool prepared = [] {
    state.processor = in_target::find_processor_features();
    return true;
  }();
  EXPECT_TRUE(prepared);
  state.vectors.load(vectors, state.processor);
  std::uint8_t way[2048];
  Made made;
  made.walk = finder.look_ahead(registers, flags, fs_base, reader, limits, state, way, sizeof way);
  const auto lines = profile::unpack_branch_trace({way, made.walk.trace_bytes}, registers[Register::rip]);
  EXPECT_TRUE(lines.has_value());
  made.lines = lines.value_or(std::vector<profile::Straight>{});
  return made;
}

struct Stepped {
  std::uint64_t ip = 0;
  std::uint8_t length = 0;
};

/// Instructions that were executed as the lookahead says, from step `at` on; `whole`: all of them.
struct Held {
  std::size_t instructions = 0;
  bool whole = true;
};
Held hold(const Made& made, const std::vector<Stepped>& steps, std::size_t at) {
  Held held;
  for (std::size_t i = 0; i < made.lines.size(); ++i) {
    const bool last = i + 1 == made.lines.size();
    std::uint64_t ip = made.lines[i].begin;
    while (at < steps.size() && steps[at].ip == ip && !(last && ip == made.lines[i].last)) {
      ++held.instructions;
      ip += steps[at++].length;
      if (!last && steps[at - 1].ip == made.lines[i].last) {
        break;
      }
    }
    if (at >= steps.size()) {
      return held;  // the trace ends
    }
    const bool arrived = last ? ip == made.lines[i].last : steps[at - 1].ip == made.lines[i].last;
    if (!arrived) {
      held.whole = false;
      return held;
    }
  }
  return held;
}

struct Score {
  std::size_t walks = 0, wrong = 0, instructions = 0, ended_whole = 0;
};

Score score(const Fixture& fixture) {
  constexpr std::size_t every = 53;
  std::vector<Stepped> steps;
  std::map<std::size_t, Made> walks;
  pid_t child = 0;
  const CodeReader reader = process_reader(&child);
  trace(fixture.run, usual_steps(), [&](const TraceStep& step, pid_t pid) {
    child = pid;
    if (steps.size() % every == 0) {
      walks[steps.size()] = make_walk(step.registers, step.flags, step.fs_base, reader, {}, step.vectors);
    }
    steps.push_back({step.registers[Register::rip], step.length});
  });
  Score score;
  for (const auto& [at, made] : walks) {
    const Held held = hold(made, steps, at);
    ++score.walks;
    score.wrong += held.whole ? 0 : 1;
    score.ended_whole += made.walk.end == LookaheadEnd::whole ? 1 : 0;
    score.instructions += held.instructions;
  }
  return score;
}

void run(const Fixture* fixtures, int count, const char* how) {
  Score all;
  for (int i = 0; i < count; ++i) {
    const Score one = score(fixtures[i]);
    std::printf("%-28s %s walks %4zu whole %4zu instructions %7zu wrong %zu\n", fixtures[i].name, how, one.walks,
                one.ended_whole, one.instructions, one.wrong);
    EXPECT_EQ(one.wrong, 0U) << fixtures[i].name << " " << how;
    all.walks += one.walks, all.ended_whole += one.ended_whole, all.instructions += one.instructions;
  }
  EXPECT_GT(all.ended_whole, all.walks / 4) << how;
  EXPECT_GT(all.instructions, 50 * all.walks) << how;
}

TEST(WalkTrace, OptimizedFunctionsAreExecutedAsWalksSay) { run(optimized::fixtures, optimized::fixture_count, "-O2"); }

TEST(WalkTrace, UnoptimizedFunctionsAreExecutedAsWalksSay) {
  run(unoptimized::fixtures, unoptimized::fixture_count, "-O0");
}

/// Code and data that exist only here.
class LookaheadTest : public testing::Test {
 protected:
  static constexpr std::uint64_t code_at = 0x400800;
  static constexpr std::uint64_t data_at = 0x600000;
  static constexpr std::uint64_t stack_at = 0x7fff00001000;

  LookaheadTest() {
    registers_[Register::rip] = code_at;
    registers_[Register::rsp] = stack_at;
    registers_[Register::rdi] = data_at;
    pages_[data_at / page_bytes].resize(page_bytes);
    pages_[stack_at / page_bytes].resize(page_bytes);
  }
  void code(std::initializer_list<std::uint8_t> bytes) {
    std::vector<std::uint8_t>& page = pages_[code_at / page_bytes];
    page.assign(page_bytes, 0xcc);
    std::memcpy(page.data() + code_at % page_bytes, std::data(bytes), bytes.size());
  }
  Made walk(const LookaheadLimits& limits = {}) {
    return make_walk(registers_, 0x202, 0, {this, read, read}, limits, vectors_);
  }
  /// Into the low half of a vector register; the others are zero.
  void number(unsigned which, double value) {
    std::memcpy(saved_ + 160 + std::size_t{16} * which, &value, sizeof value);
    mode(0x1f80);
  }
  void mode(std::uint32_t mode) {
    constexpr std::uint64_t in_use = 2;
    std::memcpy(saved_ + 24, &mode, sizeof mode);
    std::memcpy(saved_ + 512, &in_use, sizeof in_use);
    vectors_ = {saved_, sizeof saved_, 7};
  }

  Registers registers_;
  std::map<std::uint64_t, std::vector<std::uint8_t>> pages_;

 private:
  std::uint8_t saved_[832] = {};
  in_target::VectorFrame vectors_;  // none at first
  static constexpr std::uint64_t page_bytes = 4096;
  static bool read(void* context, std::uint64_t address, void* out, std::size_t bytes) {
    auto& pages = static_cast<LookaheadTest*>(context)->pages_;
    const auto found = pages.find(address / page_bytes);
    if (found == pages.end()) {
      return false;
    }
    std::memcpy(out, found->second.data() + address % page_bytes, bytes);
    return true;
  }
};

TEST_F(LookaheadTest, CountsPassagesOfItsHeadAndEndsThere) {
  code({0x83, 0xc0, 0x01, 0xeb, 0xfb});  // add eax, 1; jmp back
  const Made made = walk({.passages = 5});
  EXPECT_EQ(made.walk.end, LookaheadEnd::whole);
  EXPECT_EQ(made.walk.head, code_at);
  EXPECT_EQ(made.walk.passages, 5U);
  EXPECT_EQ(made.walk.instructions, 10U);  // the first iteration is not counted
  EXPECT_TRUE(made.walk.alike);
  ASSERT_EQ(made.lines.size(), 6U);
  EXPECT_EQ(made.lines.back().begin, code_at);
  EXPECT_EQ(made.lines.back().last, code_at);
}

TEST_F(LookaheadTest, EndsAtItsHeadOnceItIsLong) {
  code({0x83, 0xc0, 0x01, 0xff, 0xc2, 0xeb, 0xf9});  // add eax, 1; inc edx; jmp back
  const Made made = walk({.passages = 1000, .instructions = 31});
  EXPECT_EQ(made.walk.end, LookaheadEnd::whole);
  EXPECT_EQ(made.walk.instructions, 33U);
}

TEST_F(LookaheadTest, IsCutWhenItsIterationsAreTooLong) {
  code({0x83, 0xc0, 0x01, 0xff, 0xc2, 0xeb, 0xf9});
  const Made made = walk({.passages = 1000, .instructions = 1000, .most_instructions = 31});
  EXPECT_EQ(made.walk.end, LookaheadEnd::length);
  EXPECT_EQ(made.walk.instructions, 31U);
}

TEST_F(LookaheadTest, SeesItsOwnStores) {
  // 0: add dword [rdi], 1; 3: cmp dword [rdi], 3; 6: jb 0; 8: syscall
  code({0x83, 0x07, 0x01, 0x83, 0x3f, 0x03, 0x72, 0xf8, 0x0f, 0x05});
  const Made made = walk();
  EXPECT_EQ(made.walk.end, LookaheadEnd::code);
  EXPECT_EQ(made.walk.instructions, 9U);
  EXPECT_EQ(made.walk.passages, 2U);
  EXPECT_EQ(made.lines.back().last, code_at + 8);
  EXPECT_EQ(pages_[data_at / 4096][0], 0);  // the target's is as it was
  EXPECT_EQ(walk().walk.instructions, 9U);  // and the next walk begins with that
}

TEST_F(LookaheadTest, IterationsThatDifferAreNotAlike) {
  // 0: add eax, 1; 3: test al, 1; 5: jne 9; 7: inc edx; 9: jmp 0
  code({0x83, 0xc0, 0x01, 0xa8, 0x01, 0x75, 0x02, 0xff, 0xc2, 0xeb, 0xf5});
  const Made made = walk();
  EXPECT_EQ(made.walk.end, LookaheadEnd::whole);
  EXPECT_FALSE(made.walk.alike);
}

TEST_F(LookaheadTest, FollowsCallsAndReturns) {
  // 0: call 7; 5: jmp 0; 7: ret
  code({0xe8, 0x02, 0x00, 0x00, 0x00, 0xeb, 0xf9, 0xc3});
  const Made made = walk({.passages = 4});
  EXPECT_EQ(made.walk.end, LookaheadEnd::whole);
  EXPECT_EQ(made.walk.head, code_at);
  EXPECT_EQ(made.walk.instructions, 12U);
}

TEST_F(LookaheadTest, EndsWhereNumbersDecideThatAreNotKnown) {
  // 0: inc eax; 2: comisd xmm0, xmm1; 6: ja 0
  code({0xff, 0xc0, 0x66, 0x0f, 0x2f, 0xc1, 0x77, 0xf8});
  const Made made = walk();  // no vector registers
  EXPECT_EQ(made.walk.end, LookaheadEnd::value);
  EXPECT_EQ(made.walk.instructions, 2U);
  EXPECT_EQ(made.walk.head, 0U);
}

TEST_F(LookaheadTest, FollowsWhatNumbersDecide) {
  // 0: addsd xmm0, [rdi]; 4: comisd xmm1, xmm0; 8: ja 0; a: syscall
  code({0xf2, 0x0f, 0x58, 0x07, 0x66, 0x0f, 0x2f, 0xc8, 0x77, 0xf6, 0x0f, 0x05});
  const double step = 0.25;
  std::memcpy(pages_[data_at / 4096].data(), &step, sizeof step);
  number(1, 2.0);
  const Made made = walk();
  EXPECT_EQ(made.walk.end, LookaheadEnd::code);
  EXPECT_EQ(made.walk.instructions, 24U);  // eight times round
  EXPECT_EQ(made.lines.back().last, code_at + 10);
}

TEST_F(LookaheadTest, RoundsAsTheThreadDoes) {
  // 0: cvtsd2si eax, xmm0; 4: cmp eax, 2; 7: jne 5 bytes back, to its own start, for ever; 9: syscall
  code({0xf2, 0x0f, 0x2d, 0xc0, 0x83, 0xf8, 0x02, 0x75, 0xf7, 0x0f, 0x05});
  constexpr std::uint32_t up = 0x5f80;
  number(0, 1.25);
  EXPECT_EQ(walk().walk.end, LookaheadEnd::whole);
  mode(up);
  EXPECT_EQ(walk().walk.end, LookaheadEnd::code);
}

TEST_F(LookaheadTest, LeavesTheModeOfTheFloatingPointUnitAlone) {
  // 0: divsd xmm0, xmm1; 4: jmp 0
  code({0xf2, 0x0f, 0x5e, 0xc1, 0xeb, 0xfa});
  number(0, 1.0);
  number(1, 0.0);
  constexpr unsigned untouched = 0x9fc0;  // flush to zero, denormals are zero
  const unsigned before = _mm_getcsr();
  _mm_setcsr(untouched);
  const LookaheadEnd end = walk().walk.end;
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(end, LookaheadEnd::whole);
  EXPECT_EQ(after, untouched);
}

TEST_F(LookaheadTest, ExchangesOnlyItsOwnCopy) {
  // 0: mov eax, [rdi]; 2: lea ecx, [rax+1]; 5: lock cmpxchg [rdi], ecx; 9: jne 0; b: cmp ecx, 3; e: jb 0; 10: syscall
  code({0x8b, 0x07, 0x8d, 0x48, 0x01, 0xf0, 0x0f, 0xb1, 0x0f, 0x75, 0xf5, 0x83, 0xf9, 0x03, 0x72, 0xf0, 0x0f, 0x05});
  const Made made = walk();
  EXPECT_EQ(made.walk.end, LookaheadEnd::code);
  EXPECT_EQ(made.walk.instructions, 18U);
  EXPECT_EQ(pages_[data_at / 4096][0], 0);
}

TEST_F(LookaheadTest, LooksForBytesByTheVector) {
  // 0: movdqu xmm1, [rdi]; 4: pcmpeqb xmm1, xmm0; 8: add rdi, 16; c: pmovmskb eax, xmm1; 10: test eax, eax; 12: je 0
  code({0xf3, 0x0f, 0x6f, 0x0f, 0x66, 0x0f, 0x74, 0xc8, 0x48, 0x83, 0xc7,
        0x10, 0x66, 0x0f, 0xd7, 0xc1, 0x85, 0xc0, 0x74, 0xec, 0x0f, 0x05});
  std::memset(pages_[data_at / 4096].data(), 'a', 4096);
  pages_[data_at / 4096][100] = 0;
  number(0, 0);
  const Made made = walk();
  EXPECT_EQ(made.walk.end, LookaheadEnd::code);
  EXPECT_EQ(made.walk.instructions, 7U * 6U);
}

TEST_F(LookaheadTest, EndsWhereAStoreGoesToAnUnknownPlace) {
  // 0: movq rax, xmm0; 5: mov dword [rax], 0; b: jmp 0
  code({0x66, 0x48, 0x0f, 0x7e, 0xc0, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00, 0xeb, 0xf3});
  EXPECT_EQ(walk().walk.end, LookaheadEnd::value);
  EXPECT_EQ(walk().walk.instructions, 1U);
}

TEST_F(LookaheadTest, EndsBeforeRepeatedInstructionsAndTraps) {
  for (const auto& bytes : {std::vector<std::uint8_t>{0xf3, 0xa4}, {0x0f, 0x05}, {0xcc}, {0xf4}, {0x0f, 0x0b}}) {
    code({0x90});
    std::memcpy(pages_[code_at / 4096].data() + code_at % 4096 + 1, bytes.data(), bytes.size());
    const Made made = walk();
    EXPECT_EQ(made.walk.end, LookaheadEnd::code);
    EXPECT_EQ(made.walk.instructions, 1U);
    EXPECT_EQ(made.lines.back().last, code_at + 1);
  }
}

TEST_F(LookaheadTest, MayTouchOnlySoMuchMemory) {
  // 0: mov byte [rdi], 1; 3: add rdi, 64; 7: jmp 0
  code({0xc6, 0x07, 0x01, 0x48, 0x83, 0xc7, 0x40, 0xeb, 0xf7});
  const Made made = walk({.passages = 1000, .instructions = 4000});
  EXPECT_EQ(made.walk.end, LookaheadEnd::room);
  EXPECT_LT(made.walk.instructions, 3 * LookaheadMemory::blocks + 3);
}

TEST(WalkMemoryTest, StoresLieOverWhatIsRead) {
  std::uint8_t bytes[192];
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    bytes[i] = static_cast<std::uint8_t>(i);
  }
  const CodeReader reader{bytes, nullptr, [](void* context, std::uint64_t address, void* out, std::size_t count) {
                            if (address + count > sizeof bytes) {
                              return false;
                            }
                            std::memcpy(out, static_cast<std::uint8_t*>(context) + address, count);
                            return true;
                          }};
  LookaheadMemory& memory = state.memory;
  memory.begin(reader);
  EXPECT_EQ(memory.load(62, 4).bits, 0x41403f3eU);  // over two lines
  memory.store(62, 4, {0xa4a3a2a1, true});
  EXPECT_EQ(memory.load(60, 8).bits, 0x4342a4a3a2a13d3cU);
  memory.store(63, 2, {});
  EXPECT_FALSE(memory.load(62, 4).known);
  EXPECT_EQ(memory.load(65, 2).bits, 0x42a4U);
  EXPECT_FALSE(memory.load(64, 1).known);
  memory.store(0, 64, {1, true});  // wider than what is followed
  EXPECT_FALSE(memory.load(8, 8).known);
  EXPECT_FALSE(memory.load(192, 1).known);  // not there
  memory.store(192, 1, {7, true});
  EXPECT_EQ(memory.load(192, 1).bits, 7U);
  memory.begin(reader);
  EXPECT_EQ(memory.load(8, 2).bits, 0x0908U);
  EXPECT_FALSE(memory.full());
}

}  // namespace
}  // namespace crosstalk::test::lookahead_test
