// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "driver/terminal/fetch_progress.h"
#include "driver/text/source.h"
#include "sample_analysis.h"
#include "text_lines.h"

namespace crosstalk::driver::text_source_test {
namespace {

using test::line_with;
using test::lines_of;

std::vector<std::string> numbered_source(std::size_t lines) {
  std::vector<std::string> text;
  for (std::size_t i = 1; i <= lines; ++i) {
    text.push_back("statement " + std::to_string(i) + ";");
  }
  return text;
}

attribution::Analysis analysis_with_lines() {
  auto analysis = test::sample_analysis();
  analysis.code_lines = {{"/src/bench/histogram.cpp", 41, "add", 2.0, 0.4},
                         {"/src/bench/histogram.cpp", 42, "add", 0.5, 0.1},
                         {"/src/main.cpp", 20, "worker(int)", 0.1, 0.02}};
  return analysis;
}

SourceNotes notes_of(const attribution::Analysis& analysis, const std::string& wanted) {
  auto notes = source_notes(analysis, wanted);
  EXPECT_TRUE(notes) << (notes ? "" : notes.error().message);
  return notes ? std::move(*notes) : SourceNotes{};
}

TEST(SourceNotes, AFileIsFoundByTheEndOfItsPath) {
  const auto analysis = analysis_with_lines();
  EXPECT_EQ(notes_of(analysis, "").file, "/src/bench/histogram.cpp");
  for (const char* name : {"histogram.cpp", "bench/histogram.cpp", "./histogram.cpp", "/src/bench/histogram.cpp"}) {
    EXPECT_EQ(notes_of(analysis, name).file, "/src/bench/histogram.cpp");
  }
  const auto none = source_notes(analysis, "gram.cpp");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("/src/bench/histogram.cpp, /src/main.cpp"), std::string::npos);
}

TEST(SourceNotes, OneOfSeveralFilesHasToBeNamed) {
  auto analysis = analysis_with_lines();
  analysis.code_lines[0].file = "/other/main.cpp";
  const auto notes = source_notes(analysis, "main.cpp");
  ASSERT_FALSE(notes);
  EXPECT_NE(notes.error().message.find("/other/main.cpp, /src/main.cpp"), std::string::npos) << notes.error().message;
}

TEST(SourceNotes, LinesHaveTheirTimeCostAndPartners) {
  const SourceNotes notes = notes_of(analysis_with_lines(), "histogram.cpp");
  ASSERT_EQ(notes.lines.size(), 2U);
  const LineNote& note = notes.lines.at(41);
  EXPECT_DOUBLE_EQ(note.share, 0.4);
  ASSERT_EQ(note.consumed.size(), 1U);
  EXPECT_EQ(note.consumed[0].consumer, 2U);
  ASSERT_EQ(notes.loops.size(), 1U);
}

TEST(TextSource, FiguresStandBesideTheirLines) {
  const auto analysis = analysis_with_lines();
  const std::string text = render_source(analysis, notes_of(analysis, "histogram.cpp"), numbered_source(100), 0,
                                         {120, Charset::utf8, false});
  const std::string line = line_with(text, "statement 41;");
  EXPECT_NE(line.find("40.0 %"), std::string::npos) << text;
  EXPECT_NE(line.find("2 ← 1"), std::string::npos) << line;
  EXPECT_NE(line_with(text, "statement 40;").find("52.0 %"), std::string::npos) << text;  // the loop begins there
  EXPECT_NE(line_with(text, "statement 43;").find("│"), std::string::npos) << text;
  EXPECT_NE(text.find("⋮ 37 lines"), std::string::npos) << text;
  EXPECT_EQ(text.find("statement 60;"), std::string::npos);
}

TEST(TextSource, ALineIsShownWithWhatIsAroundIt) {
  const auto analysis = analysis_with_lines();
  const std::string text = render_source(analysis, notes_of(analysis, ""), numbered_source(100), 80, {});
  EXPECT_NE(text.find("80> statement 80;"), std::string::npos) << text;
  EXPECT_NE(text.find("statement 92;"), std::string::npos);
  EXPECT_EQ(text.find("statement 41;"), std::string::npos);
  EXPECT_NE(render_source(analysis, notes_of(analysis, ""), numbered_source(100), 101, {}).find("no line 101"),
            std::string::npos);
}

TEST(TextSource, WithoutTheSourceLinesWithFiguresAreListed) {
  const auto analysis = analysis_with_lines();
  const std::string text = render_source(analysis, notes_of(analysis, ""), std::nullopt, 0, {});
  EXPECT_NE(text.find("The source is not here"), std::string::npos);
  EXPECT_NE(line_with(text, "40.0 %").find("41"), std::string::npos) << text;
  EXPECT_EQ(text.find("statement"), std::string::npos);
}

TEST(TextSource, FitsTheWidth) {
  const auto analysis = analysis_with_lines();
  std::vector<std::string> source = numbered_source(100);
  source[40] = std::string(500, 'x') + "\x1b[2J";
  for (const int width : {60, 72, 80, 100, 200}) {
    for (const Charset charset : {Charset::utf8, Charset::ascii}) {
      for (const bool there : {true, false}) {
        const std::string text = render_source(
            analysis, notes_of(analysis, ""), there ? std::optional(source) : std::nullopt, 0, {width, charset, false});
        EXPECT_EQ(text.find('\x1b'), std::string::npos);
        for (const std::string& line : lines_of(text)) {
          EXPECT_LE(display_width(line), width) << line;
        }
      }
    }
  }
}

TEST(TextSource, HeatIsForTerminalsWithColours) {
  const auto analysis = analysis_with_lines();
  const std::string text =
      render_source(analysis, notes_of(analysis, ""), numbered_source(100), 0, {100, Charset::utf8, true});
  EXPECT_NE(line_with(text, "statement 41;").find("\x1b[48;5;"), std::string::npos);
}

TEST(SourceFile, APlaceIsAFileAndPerhapsALine) {
  EXPECT_EQ(parse_place("a.cpp:30").file, "a.cpp");
  EXPECT_EQ(parse_place("a.cpp:30").line, 30U);
  EXPECT_EQ(parse_place("a.cpp").line, 0U);
  EXPECT_EQ(parse_place("C:x").file, "C:x");
  EXPECT_EQ(parse_place("a:0").file, "a:0");
}

TEST(SourceFile, IsLookedForUnderTheSysrootFirst) {
  const std::string root = ::testing::TempDir() + "crosstalk_source_file";
  std::filesystem::create_directories(root + "/src");
  std::ofstream(root + "/src/a.cpp") << "one\r\n\ttwo\n";
  const auto text = read_source("/src/a.cpp", root);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, (std::vector<std::string>{"one", "    two"}));
  EXPECT_TRUE(read_source("/build/gone/../../src/a.cpp", root));
  EXPECT_FALSE(read_source("/src/none.cpp", root));
  EXPECT_FALSE(read_source("/src", root));
  std::filesystem::remove_all(root);
}

TEST(FetchProgress, SaysHowFarItIs) {
  EXPECT_EQ(describe_wait({"0123456789abcdef", 0, 0, 3.2, false}),
            "fetching debug information 01234567, no answer for 3 s");
  EXPECT_EQ(describe_wait({"01", 1 << 20, 4 << 20, 1, false}), "fetching debug information 01, 1 MiB of 4 MiB, 1 s");
}

}  // namespace
}  // namespace crosstalk::driver::text_source_test
