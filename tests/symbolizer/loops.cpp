// SPDX-License-Identifier: Apache-2.0
// Control-flow graphs, natural loops and their source lines.
#include "symbolizer/loops/loops.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fixture.h"
#include "symbolizer/loops/natural_loops.h"

namespace crosstalk::symbolizer::loops_test {
namespace {

const Loop* loop_from(const FunctionLoops& loops, const std::string& mark) {
  const std::uint32_t line = line_of(mark);
  const auto found = std::find_if(loops.loops.begin(), loops.loops.end(),
                                  [line](const Loop& loop) { return loop.begin.line == line; });
  return found == loops.loops.end() ? nullptr : &*found;
}

class Loops : public testing::TestWithParam<const char*> {};

TEST_P(Loops, NestedLoopsHaveDepthParentAndLines) {
  Program program(GetParam());
  const FunctionLoops* loops = program.symbols.loops(program.id, program.address("nested_loops"));
  ASSERT_NE(loops, nullptr);
  ASSERT_EQ(loops->loops.size(), 4U);
  const Loop* i = loop_from(*loops, "loop_i");
  const Loop* j = loop_from(*loops, "loop_j");
  const Loop* k = loop_from(*loops, "loop_k");
  const Loop* m = loop_from(*loops, "loop_m");
  ASSERT_TRUE(i != nullptr && j != nullptr && k != nullptr && m != nullptr);
  EXPECT_EQ(i->depth, 1U);
  EXPECT_EQ(j->depth, 2U);
  EXPECT_EQ(k->depth, 3U);
  EXPECT_EQ(m->depth, 1U);
  EXPECT_EQ(i->parent, Loop::no_parent);
  EXPECT_EQ(&loops->loops[j->parent], i);
  EXPECT_EQ(&loops->loops[k->parent], j);
  EXPECT_EQ(k->begin.file, FIXTURE_SOURCE);
  EXPECT_GE(k->end.line, line_of("loop_k_end") - 1);
  EXPECT_LE(k->end.line, line_of("loop_k_end") + 1);
  EXPECT_GE(i->end.line, line_of("loop_j_end"));
  EXPECT_LT(i->end.line, line_of("loop_m"));
}

TEST_P(Loops, RangesAreSortedDisjointAndInnermost) {
  Program program(GetParam());
  const FunctionLoops* loops = program.symbols.loops(program.id, program.address("nested_loops"));
  ASSERT_NE(loops, nullptr);
  std::uint64_t end = 0;
  for (const auto& range : loops->ranges) {
    EXPECT_LE(end, range.begin);
    EXPECT_LT(range.begin, range.end);
    EXPECT_EQ(loops->innermost(range.begin), range.loop);
    EXPECT_EQ(loops->innermost(range.end - 1), range.loop);
    end = range.end;
  }
  for (std::uint32_t i = 0; i < loops->loops.size(); ++i) {
    EXPECT_EQ(loops->innermost(loops->loops[i].header), i);
  }
  EXPECT_FALSE(loops->innermost(loops->function_begin));
}

TEST_P(Loops, LoopsInsideSwitchCasesAreSeen) {
  Program program(GetParam());
  const FunctionLoops* loops = program.symbols.loops(program.id, program.address("switch_in_loop"));
  ASSERT_NE(loops, nullptr);
  ASSERT_EQ(loops->loops.size(), 2U);
  const Loop* inner = loop_from(*loops, "case_loop");
  ASSERT_NE(inner, nullptr);
  EXPECT_EQ(inner->depth, 2U);
  EXPECT_EQ(loops->loops[0].begin.line, line_of("switch_loop"));
}

TEST_P(Loops, AnInlinedLoopHasItsOwnLines) {
  Program program(GetParam());
  const FunctionLoops* loops = program.symbols.loops(program.id, program.address("caller_of_kernel"));
  ASSERT_NE(loops, nullptr);
  ASSERT_EQ(loops->loops.size(), 2U);
  const Loop* kernel = loop_from(*loops, "kernel_loop");
  ASSERT_NE(kernel, nullptr);
  EXPECT_LE(kernel->end.line, line_of("kernel_loop_end") + 1);
  const Loop* rounds = loop_from(*loops, "rounds");
  ASSERT_NE(rounds, nullptr);
  EXPECT_EQ(rounds->end.line, line_of("kernel_call"));
}

INSTANTIATE_TEST_SUITE_P(Builds, Loops,
                         testing::Values("program_o0", "program_o2", "program_no_pie", "program_split",
                                         "program_dwarf4"),
                         [](const auto& suite) { return std::string(suite.param); });

TEST(LoopsOfStripped, AddressesFromFrameInformation) {
  Options nowhere = offline();
  nowhere.debug_paths.clear();
  Program whole("program_o2");
  const std::uint64_t address = whole.address("nested_loops");
  // The stripped program, where its .debug folder is not.
  const std::string lonely = testing::TempDir() + "/lonely_program";
  {
    std::ifstream from(fixture("stripped/program"), std::ios::binary);
    std::ofstream(lonely, std::ios::binary) << from.rdbuf();
  }
  Symbolizer symbols(nowhere);
  const ModuleId id = symbols.add_module({lonely, "", false});
  const CodeLocation& location = symbols.locate(id, address + 8);
  EXPECT_TRUE(location.frames.empty());
  EXPECT_EQ(location.function_begin, address);
  const FunctionLoops* loops = symbols.loops(id, address + 8);
  ASSERT_NE(loops, nullptr);
  EXPECT_EQ(loops->loops.size(), 4U);
  EXPECT_EQ(loops->loops[0].begin.line, 0U);
}

/// A graph without code: blocks with the given successors.
ControlFlow graph(const std::vector<std::vector<std::uint32_t>>& successors) {
  ControlFlow flow;
  for (std::uint32_t i = 0; i < successors.size(); ++i) {
    flow.instructions.push_back({i, 0, 1, Flow::next, false});
    flow.blocks.push_back({i, i + 1, i, i, successors[i]});
  }
  flow.entries = {0};
  return flow;
}

TEST(NaturalLoops, BackEdgesToOneHeaderAreOneLoop) {
  const LoopNest nest = natural_loops(graph({{1}, {2, 3}, {1}, {1, 4}, {}}));
  ASSERT_EQ(nest.loops.size(), 1U);
  EXPECT_EQ(nest.loops[0].header, 1U);
  EXPECT_EQ(nest.loops[0].blocks, (std::vector<std::uint32_t>{1, 2, 3}));
}

TEST(NaturalLoops, IrreducibleCyclesAreNone) {
  EXPECT_TRUE(natural_loops(graph({{1, 2}, {2}, {1, 3}, {}})).loops.empty());
}

TEST(NaturalLoops, SelfLoop) {
  const LoopNest nest = natural_loops(graph({{1}, {1, 2}, {}}));
  ASSERT_EQ(nest.loops.size(), 1U);
  EXPECT_EQ(nest.loops[0].blocks, (std::vector<std::uint32_t>{1}));
}

}  // namespace
}  // namespace crosstalk::symbolizer::loops_test
