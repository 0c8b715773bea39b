// SPDX-License-Identifier: Apache-2.0
// The paths round loops whose iterations branch: few are found, and a search among too many ends.
#include <gtest/gtest.h>

#include <cstdint>
#include <span>

#include "symbolizer/loops/loop_anatomy.h"

// Each function is analysed as bytes and never run. A branch has two blocks, one of which may be skipped.
asm(R"(
.text
.macro turnings name, count
  .globl \name
  \name :
  .rept \count
    test %rax, %rcx
    je 1f
    inc %rdx
    1:
  .endr
  dec %rsi
  jne \name
  ret
  .globl \name\()_end
  \name\()_end :
.endm
turnings four_turnings, 4
turnings ninety_turnings, 90
)");

extern "C" {
extern const std::uint8_t four_turnings[], four_turnings_end[], ninety_turnings[], ninety_turnings_end[];
}

namespace crosstalk::symbolizer::loop_ways_test {
namespace {

std::size_t ways_round_the_only_loop(std::span<const std::uint8_t> code) {
  const auto begin = reinterpret_cast<std::uint64_t>(code.data());
  const ReadBytes read = [code, begin](std::uint64_t at) { return code.subspan(at - begin); };
  const ControlFlow flow = control_flow({begin, begin + code.size()}, code, read, [](std::uint64_t) { return false; });
  LoopAnatomy anatomy(flow, read);
  EXPECT_EQ(anatomy.loops(), 1U);
  return anatomy.ways(0).size();
}

TEST(LoopWays, EachCombinationOfFewTurningsIsOne) {
  EXPECT_EQ(ways_round_the_only_loop({four_turnings, four_turnings_end}), 16U);
}

// Its paths are longer than the search follows: none of 2^45 pieces of a path leads back to the header.
TEST(LoopWays, ASearchThatFindsNoneEnds) {
  EXPECT_EQ(ways_round_the_only_loop({ninety_turnings, ninety_turnings_end}), 0U);
}

}  // namespace
}  // namespace crosstalk::symbolizer::loop_ways_test
