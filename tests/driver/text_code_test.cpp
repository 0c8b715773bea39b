// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "driver/text/code.h"
#include "sample_analysis.h"
#include "text_lines.h"

namespace crosstalk::driver::text_code_test {
namespace {

using test::line_with;
using test::lines_of;

using attribution::FunctionCode;
using attribution::InstructionRow;

/// A function of `count` instructions, of which number 50 communicates.
attribution::Analysis analysis_with_code(std::size_t count = 100) {
  auto analysis = test::sample_analysis();
  FunctionCode code;
  code.function = "worker(int)";
  code.module = "/src/a.out";
  code.begin = 0x1000;
  code.share = 0.5;
  for (std::size_t i = 0; i < count; ++i) {
    InstructionRow row;
    row.address = 0x1000 + 4 * i;
    row.text = "instruction_" + std::to_string(i);
    row.frames = {{"bump", {"/src/counters.cpp", static_cast<std::uint32_t>(i < 50 ? 10 : 11)}, true},
                  {"worker(int)", {"/src/main.cpp", 20}, false}};
    code.instructions.push_back(row);
  }
  InstructionRow& hot = code.instructions[std::min<std::size_t>(50, count - 1)];
  hot.share = 0.4;
  hot.cells = analysis.communication.lines.front().cells;
  hot.false_sharing = hot.cells.front().false_sharing;
  hot.text = "lock incq 0x40(%rip)  <counters+0x8>";
  analysis.code = {code};
  return analysis;
}

TEST(TextCode, FiguresStandBesideTheirInstruction) {
  const std::string text = render_code(analysis_with_code(), {}, "", {120, Charset::utf8, false});
  const std::string line = line_with(text, "lock incq");
  EXPECT_NE(line.find("40.0 %"), std::string::npos) << text;
  EXPECT_NE(line.find("412ms"), std::string::npos) << text;
  EXPECT_NE(line.find("2 ← 1"), std::string::npos) << text;
  EXPECT_NE(line.find("10c8"), std::string::npos) << text;
  EXPECT_NE(line_with(text, "worker(int)").find("a.out+0x1000, 50.0 % of the CPU time"), std::string::npos) << text;
}

TEST(TextCode, InstructionsStandUnderTheirLines) {
  const std::string text = render_code(analysis_with_code(), {}, "", {120, Charset::utf8, false});
  EXPECT_NE(line_with(text, "counters.cpp:11").find("in bump"), std::string::npos) << text;
  EXPECT_LT(text.find("counters.cpp:11"), text.find("lock incq"));
  EXPECT_GT(text.find("counters.cpp:11"), text.find("instruction_49"));
}

TEST(TextCode, WhatIsFarFromFiguresIsLeftOut) {
  const std::string text = render_code(analysis_with_code(), {}, "", {120, Charset::utf8, false});
  EXPECT_EQ(text.find("instruction_40"), std::string::npos);
  EXPECT_NE(text.find("⋮ 46 instructions"), std::string::npos) << text;
  EXPECT_NE(text.find("⋮ 45 instructions"), std::string::npos) << text;
  EXPECT_EQ(render_code(analysis_with_code(20), {}, "", {}).find("⋮"), std::string::npos);
}

TEST(TextCode, ALineThatIsAskedForIsMarked) {
  const std::string text = render_code(analysis_with_code(), {"counters.cpp", 10}, "", {120, Charset::utf8, false});
  EXPECT_NE(line_with(text, "instruction_0").find("1000>"), std::string::npos) << text;
  EXPECT_EQ(line_with(text, "lock incq").find("10c8>"), std::string::npos) << text;
}

TEST(TextCode, FitsTheWidth) {
  auto analysis = analysis_with_code();
  analysis.code[0].function = std::string(300, 'f');
  analysis.code[0].instructions[51].text = std::string(300, 'x') + "\x1b[2J";
  for (const int width : {60, 72, 80, 100, 200}) {
    for (const Charset charset : {Charset::utf8, Charset::ascii}) {
      const std::string text = render_code(analysis, {}, "", {width, charset, false});
      EXPECT_EQ(text.find('\x1b'), std::string::npos);
      for (const std::string& line : lines_of(text)) {
        EXPECT_LE(display_width(line), width) << line;
      }
    }
  }
}

}  // namespace
}  // namespace crosstalk::driver::text_code_test
