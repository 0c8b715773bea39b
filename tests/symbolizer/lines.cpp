// SPDX-License-Identifier: Apache-2.0
// Functions, source lines and inline chains of code addresses.
#include "symbolizer/dwarf/lines.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "fixture.h"

namespace crosstalk::symbolizer::lines_test {
namespace {

/// Every address of a function where some instruction begins, by asking which accesses or lines are there.
std::vector<CodeLocation> all_locations(Program& program, const std::string& function) {
  const std::uint64_t begin = program.address(function);
  const std::uint64_t end = program.symbols.locate(program.id, begin).function_end;
  std::vector<CodeLocation> locations;
  for (std::uint64_t address = begin; address < end; ++address) {
    locations.push_back(program.symbols.locate(program.id, address));
  }
  return locations;
}

class Lines : public testing::TestWithParam<const char*> {};

TEST_P(Lines, FunctionAndFileOfAnAddress) {
  Program program(GetParam());
  const std::uint64_t begin = program.address("nested_loops");
  ASSERT_NE(begin, 0U);
  const CodeLocation& location = program.symbols.locate(program.id, begin);
  ASSERT_EQ(location.frames.size(), 1U);
  EXPECT_EQ(location.frames[0].function, "nested_loops");
  EXPECT_EQ(location.frames[0].source.file, FIXTURE_SOURCE);
  EXPECT_FALSE(location.frames[0].inlined);
  EXPECT_TRUE(location.has_lines);
  EXPECT_EQ(location.function_begin, begin);
  EXPECT_GT(location.function_end, begin);
}

TEST_P(Lines, NamesAreDemangled) {
  Program program(GetParam());
  const CodeLocation& location = program.symbols.locate(program.id, program.address("_ZN5space10overloadedElPi"));
  ASSERT_FALSE(location.frames.empty());
  EXPECT_EQ(location.frames[0].function, "space::overloaded(long, int*)");
}

TEST_P(Lines, NamesThatAreSymbolsAreDemangled) {
  Program program(GetParam());
  const CodeLocation& location = program.symbols.locate(program.id, program.address("_ZL6partofl"));
  ASSERT_FALSE(location.frames.empty());
  EXPECT_EQ(location.frames[0].function, "partof(long)");
}

TEST_P(Lines, FunctionsWithoutLinkageNameHaveTheirScope) {
  Program program(GetParam());
  bool inlined = false;
  for (const CodeLocation& location : all_locations(program, "_ZN12_GLOBAL__N_16hiddenEl")) {
    ASSERT_FALSE(location.frames.empty());
    EXPECT_EQ(location.frames.back().function, "(anonymous namespace)::hidden");
    inlined = inlined || location.frames[0].function == "(anonymous namespace)::Hidden::twice";
  }
  EXPECT_TRUE(inlined);
}

TEST_P(Lines, LambdasAreNamedAfterTheFunctionThatMakesThem) {
  Program program(GetParam());
  std::set<std::string> inlined;
  for (const CodeLocation& location : all_locations(program, "calls_lambda")) {
    ASSERT_FALSE(location.frames.empty());
    if (location.frames.size() > 1) {
      inlined.insert(location.frames[0].function);
    }
  }
  EXPECT_EQ(inlined, std::set<std::string>{"calls_lambda::{lambda}::operator()"});
}

TEST_P(Lines, InlinedCallsAreInnermostFirst) {
  Program program(GetParam());
  bool seen = false;
  for (const CodeLocation& location : all_locations(program, "inlines")) {
    if (location.frames.size() != 3) {
      continue;
    }
    seen = true;
    const auto& frames = location.frames;
    EXPECT_EQ(frames[0].function, "innermost");
    EXPECT_EQ(frames[1].function, "middle");
    EXPECT_EQ(frames[2].function, "inlines");
    EXPECT_TRUE(frames[0].inlined && frames[1].inlined && !frames[2].inlined);
    EXPECT_EQ(frames[1].source.line, line_of("middle_call"));
    EXPECT_EQ(frames[2].source.line, line_of("outer_call"));
    EXPECT_EQ(frames[2].source.file, FIXTURE_SOURCE);
  }
  EXPECT_TRUE(seen);
}

INSTANTIATE_TEST_SUITE_P(Builds, Lines,
                         testing::Values("program_o0", "program_o2", "program_no_pie", "program_split",
                                         "program_dwarf4"),
                         [](const auto& suite) { return std::string(suite.param); });

TEST(LinesOfSplitDwarf, WithoutItsDwoFileLinesRemain) {
  // Copied away from its .dwo, which the skeleton names relative to the folder of the compilation.
  namespace fs = std::filesystem;
  const fs::path dwo = fs::path(FIXTURES) / "program_split-program.dwo";
  Program program("program_split");
  EXPECT_EQ(fs::exists(dwo) || fs::exists(fs::path(FIXTURES) / "program.dwo"), true);
  EXPECT_TRUE(program.symbols.locate(program.id, program.address("inlines")).has_lines);
}

TEST(LinesOfCode, EveryLineOfALoopBodyIsSeen) {
  Program program("program_o0");
  std::set<std::uint32_t> lines;
  for (const CodeLocation& location : all_locations(program, "nested_loops")) {
    for (const Frame& frame : location.frames) {
      lines.insert(frame.source.line);
    }
  }
  for (const char* mark : {"loop_i", "loop_j", "loop_k", "loop_m"}) {
    EXPECT_TRUE(lines.contains(line_of(mark))) << mark;
  }
}

TEST(LinesOfCode, PltStubsAreNamed) {
  Symbolizer symbols(offline());
  const std::string path = std::filesystem::read_symlink("/proc/self/exe");
  const ModuleId id = symbols.add_module({path, "", false});
  const auto file = ElfFile::open(path);
  ASSERT_TRUE(file);
  const Section* plt = file->section(".plt.sec") != nullptr ? file->section(".plt.sec") : file->section(".plt");
  ASSERT_NE(plt, nullptr);
  const CodeLocation& location = symbols.locate(id, plt->address + 32);
  ASSERT_FALSE(location.frames.empty());
  EXPECT_TRUE(location.frames[0].function.ends_with("@plt")) << location.frames[0].function;
}

TEST(LinesOfCode, UnknownAddressGivesNothing) {
  Program program("program_o2");
  for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{1} << 40U}) {
    EXPECT_TRUE(program.symbols.locate(program.id, address).frames.empty());
  }
  EXPECT_TRUE(program.symbols.locate(ModuleId{99}, 0).frames.empty());
}

}  // namespace
}  // namespace crosstalk::symbolizer::lines_test
