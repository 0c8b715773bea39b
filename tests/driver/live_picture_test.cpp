// SPDX-License-Identifier: Apache-2.0
// The live picture as text. A cell buffer's text is what a terminal shows, without its colours.
#include <gtest/gtest.h>

#include <string>

#include "driver/live/picture.h"
#include "live_snapshot.h"
#include "text_lines.h"

namespace crosstalk::driver::live::live_picture_test {
namespace {

using driver::test::line_with;
using driver::test::lines_of;
using test::crowded_snapshot;
using test::sample_snapshot;

ViewState view_of(Snapshot snapshot) {
  ViewState state([](const std::string& file) -> std::optional<std::vector<std::string>> {
    std::vector<std::string> text;
    for (int line = 1; line < 80; ++line) {
      text.push_back("  statement(" + std::to_string(line) + ");");
    }
    return file.ends_with("queue.h") ? std::nullopt : std::optional(text);
  });
  state.take(std::move(snapshot));
  return state;
}

void type(ViewState& state, const std::string& keys) {
  for (const char key : keys) {
    state.press({Key::character, static_cast<char32_t>(key)});
  }
}

std::string text_of(ViewState& state, int rows = 24, int columns = 80, Charset charset = Charset::utf8) {
  return picture_of(state, rows, columns, charset, false).text(false);
}

TEST(LivePicture, AGainOfNoneIsNoFigure) {
  Snapshot snapshot = sample_snapshot();
  snapshot.objects[0].exchange.gain_s = 0;
  snapshot.objects[1].exchange.gain_most_s.reset();
  snapshot.findings[0].gain_s.reset();
  snapshot.findings[0].gain_most_s = 3.5;
  ViewState state = view_of(std::move(snapshot));
  const std::string objects = text_of(state);
  EXPECT_NE(line_with(objects, "counters[1].hits").find("none"), std::string::npos) << objects;
  EXPECT_NE(line_with(objects, "Queue").find(" - "), std::string::npos) << objects;
  type(state, "5");
  const std::string findings = text_of(state);
  EXPECT_NE(line_with(findings, "Threads 1 and 2").find("≤ 17.5 %"), std::string::npos) << findings;
}

/// No picture is wider than its screen, and none has an escape code.
void expect_fits(const std::string& text, int rows, int columns) {
  const auto lines = lines_of(text);
  EXPECT_LE(lines.size(), static_cast<std::size_t>(rows));
  for (const std::string& line : lines) {
    EXPECT_LE(display_width(line), columns) << line;
    EXPECT_EQ(line.find('\x1b'), std::string::npos);
  }
}

TEST(LivePicture, FitsTheLeastScreen) {
  ViewState state = view_of(sample_snapshot());
  EXPECT_EQ(text_of(state), R"( crosstalk top  histogram --threads 4                              1 warning: w
 processors 2.00, now 2.00 │ overhead 1.2 % of 3 % │ lost 0 │ watch, clock
 last 10.0 s: 4 of 5 threads sampled: 2311 samples, 150 watches, 589 traps

 Who talks to whom  row to column, % of CPU time: true and false sharing
 producer       now      1     2     3     4     0
 1 worker      50 %      ·  25.0     ·     ·     ·
 2 worker      50 %   12.5     ·     ·     ·     ·
 3 worker      50 %      ·     ·     ·   2.5     ·
 4 worker      50 %      ·     ·     ·     ·     ·
 0 histogram    0 %      ·     ·     ·     ·     ·

  1 Objects  2 Lines  3 Loops  4 Threads  5 Findings
     cost▼      now     gain  sharing          object
    37.5 %   40.0 %   18.8 %  false sharing    counters[1].hits
     2.5 %    0.0 %  ≤ 1.2 %  queue            Queue







 1-5 table  ↑↓ row  Enter open  m matrix  s sort  / filter  h help  q quit
)");
}

TEST(LivePicture, UsesALargerScreen) {
  ViewState state = view_of(crowded_snapshot(30));
  type(state, "2");
  EXPECT_EQ(
      text_of(state, 40, 120),
      R"( crosstalk top  histogram --threads 4                                                                      1 warning: w
 processors 2.00, now 2.00 │ overhead 1.2 % of 3 % │ lost 0 │ watch, clock
 last 10.0 s: 4 of 5 threads sampled: 2311 samples, 150 watches, 589 traps

 Who talks to whom  row to column, % of CPU time: true and false sharing                                       15 of 30
 producer     now    0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29
 0 worker    10 %      ██
 1 worker    10 %         ██
 2 worker    10 %            ██
 3 worker    10 %               ██
 4 worker    10 %                  ██
 5 worker    10 %                     ██
 6 worker    10 %                        ██
 7 worker    10 %                           ██
 8 worker    10 %                              ██
 9 worker    10 %                                 ██
 10 worker   10 %                                    ██
 11 worker   10 %                                       ██
 12 worker   10 %                                          ██
 13 worker   10 %                                             ██
 14 worker   10 %                                                ██

  1 Objects  2 Lines  3 Loops  4 Threads  5 Findings
     cost▼      now     gain  role     source line                                         object
    37.5 %   40.0 %   18.8 %  waits    bench::detail::H…<double> const&)  histogram.cpp:41 counters
    37.5 %   40.0 %   18.8 %  stores   bench::detail::H…<double> const&)  histogram.cpp:41 counters
     2.5 %    0.0 %    0.6 %  waits    Queue::pop()  queue.h:102                           Queue












 1-5 table  ↑↓ row  Enter open  m matrix  s sort  / filter  h help  q quit
)");
}

TEST(LivePicture, DrillsFromACellToWhatItsThreadsExchange) {
  ViewState state = view_of(sample_snapshot());
  type(state, "m");
  state.press({Key::right});
  const std::string matrix = text_of(state);
  EXPECT_NE(matrix.find("cell  Enter"), std::string::npos) << matrix;
  state.press({Key::enter});
  EXPECT_EQ(text_of(state), R"( crosstalk top  histogram --threads 4                              1 warning: w
 processors 2.00, now 2.00 │ overhead 1.2 % of 3 % │ lost 0 │ watch, clock
 last 10.0 s: 4 of 5 threads sampled: 2311 samples, 150 watches, 589 traps

 Who talks to whom  row to column, % of CPU time: true and false sharing
 producer    now      1     2
 1 worker   50 %      ·  25.0
 2 worker   50 %      ·     ·

  1 Objects  2 Lines  3 Loops  4 Threads  5 Findings        1 worker → 2 worker
     cost▼      now     gain  sharing          object
    21.4 %   22.9 %   10.7 %  false sharing    counters[1].hits











 1-5 table  ↑↓ row  Enter open  m matrix  s sort  / filter  h help  q quit
)");
}

TEST(LivePicture, ShowsASourceWithItsCosts) {
  ViewState state = view_of(sample_snapshot());
  type(state, "3");
  state.press({Key::enter});
  EXPECT_EQ(text_of(state), R"( crosstalk top  histogram --threads 4                              1 warning: w
 processors 2.00, now 2.00 │ overhead 1.2 % of 3 % │ lost 0 │ watch, clock
 last 10.0 s: 4 of 5 threads sampled: 2311 samples, 150 watches, 589 traps

 /src/bench/histogram.cpp
      time     cost     gain  line
                                32     statement(32);
                                33     statement(33);
                                34     statement(34);
                                35     statement(35);
                                36     statement(36);
                                37     statement(37);
                                38     statement(38);
                                39     statement(39);
                                40     statement(40);
    55.0 %   37.5 %   18.8 %    41 s   statement(41);
     5.0 %                      42     statement(42);
                                43     statement(43);
                                44     statement(44);
                                45     statement(45);
                                46     statement(46);
                                47     statement(47);
                                48     statement(48);
 Esc back  ↑↓ scroll  1-5 tables  h help  q quit
)");
}

TEST(LivePicture, ASourceThatIsNotHereLeavesItsLinesWithFigures) {
  ViewState state = view_of(sample_snapshot());
  type(state, "2");
  state.press({Key::end});
  state.press({Key::enter});
  const std::string text = text_of(state);
  EXPECT_NE(text.find("The source is not here"), std::string::npos) << text;
  EXPECT_NE(line_with(text, " 102").find("2.5 %"), std::string::npos) << text;
}

TEST(LivePicture, TheHelpFitsTheLeastScreen) {
  ViewState state = view_of(sample_snapshot());
  type(state, "h");
  const std::string text = text_of(state);
  EXPECT_NE(text.find("man crosstalk-top"), std::string::npos) << text;
  EXPECT_EQ(text.find("…"), std::string::npos) << text;
  expect_fits(text, 24, 80);
}

TEST(LivePicture, AFindingIsShownInFull) {
  ViewState state = view_of(sample_snapshot());
  type(state, "5");
  state.press({Key::enter});
  const std::string text = text_of(state);
  EXPECT_NE(text.find("own 64-byte line."), std::string::npos) << text;
  EXPECT_NE(line_with(text, "stored at").find("histogram.cpp:41"), std::string::npos) << text;
}

TEST(LivePicture, WarningsAreListed) {
  ViewState state = view_of(sample_snapshot());
  EXPECT_NE(text_of(state).find("1 warning: w"), std::string::npos);
  type(state, "w");
  EXPECT_NE(text_of(state).find("install its debug package"), std::string::npos);
}

TEST(LivePicture, SaysThatItMeasures) {
  ViewState state({});
  EXPECT_NE(text_of(state).find("measuring"), std::string::npos);
  type(state, "h");
  EXPECT_NE(text_of(state).find("sort by the next column"), std::string::npos);
}

TEST(LivePicture, SaysWhatItIsInstead) {
  ViewState state = view_of(sample_snapshot());
  type(state, "p");
  EXPECT_NE(lines_of(text_of(state))[0].find("paused"), std::string::npos);
  type(state, "p");
  state.end("the recorder failed");
  const std::string ended = text_of(state);
  EXPECT_NE(lines_of(ended)[0].find("ended"), std::string::npos);
  EXPECT_NE(ended.find("the recorder failed"), std::string::npos);
}

TEST(LivePicture, ASmallScreenSaysSo) {
  ViewState state = view_of(sample_snapshot());
  for (const auto& [rows, columns] : {std::pair(23, 80), std::pair(24, 79), std::pair(5, 20), std::pair(1, 1)}) {
    const std::string text = text_of(state, rows, columns);
    expect_fits(text, rows, columns);
  }
  EXPECT_NE(text_of(state, 10, 60).find("80 x 24 are needed"), std::string::npos);
}

TEST(LivePicture, WithoutColoursShadesAreCharacters) {
  ViewState state = view_of(crowded_snapshot(20));
  EXPECT_NE(text_of(state).find("██"), std::string::npos);
  const std::string ascii = text_of(state, 24, 80, Charset::ascii);
  EXPECT_NE(ascii.find("##"), std::string::npos) << ascii;
  for (const char c : ascii) {
    EXPECT_TRUE(static_cast<unsigned char>(c) < 0x80) << ascii;
  }
}

TEST(LivePicture, WithColoursShadesAreInks) {
  ViewState state = view_of(sample_snapshot());
  const CellBuffer cells = picture_of(state, 24, 80, Charset::utf8, true);
  bool heated = false;
  for (int row = 0; row < 24; ++row) {
    for (int column = 0; column < 80; ++column) {
      heated = heated || cells.at(row, column).ink == heat_ink(5, true);
    }
  }
  EXPECT_TRUE(heated);
  EXPECT_NE(cells.text(true).find("\x1b[48;5;166"), std::string::npos);
}

TEST(LivePicture, UnknownCostsAreNoZeros) {
  Snapshot snapshot = sample_snapshot();
  snapshot.cells[0].exchange = {};
  snapshot.cells[0].exchange.seen = 3;
  snapshot.objects[0].exchange = {};
  snapshot.objects[0].exchange.seen = 3;
  ViewState state = view_of(std::move(snapshot));
  const std::string text = text_of(state);
  EXPECT_NE(line_with(text, "1 worker ").find("seen"), std::string::npos) << text;
  EXPECT_NE(line_with(text, "counters[1].hits").find("3 seen"), std::string::npos) << text;
}

TEST(LivePicture, FollowsTheChosenThreadInALargeMatrix) {
  ViewState state = view_of(crowded_snapshot(200));
  type(state, "m");
  state.press({Key::end});
  for (int i = 0; i < 150; ++i) {
    state.press({Key::right});
  }
  const std::string text = text_of(state);
  EXPECT_NE(text.find("199 worker"), std::string::npos) << text;
  expect_fits(text, 24, 80);
}

TEST(LivePicture, HostileNamesDoNoHarm) {
  Snapshot snapshot = sample_snapshot();
  snapshot.command = std::string("x\x1b[2J\n\xff") + std::string(500, 'y');
  snapshot.threads[1].name = "\x1b]0;title\x07";
  snapshot.objects[0].label = "日本語の変数名日本語の変数名日本語の変数名日本語の変数名日本語";
  snapshot.findings[0].sentence = std::string(2000, 'z') + "\x1b[31m";
  snapshot.watching = "e\xcc\x81\xcc\x81\xcc\x81 \xe2\x80\xae";
  ViewState state = view_of(std::move(snapshot));
  for (const char* const keys : {"1", "2", "3", "4", "5", "w", "h"}) {
    type(state, keys);
    expect_fits(text_of(state), 24, 80);
    state.press({Key::enter});
    expect_fits(text_of(state, 30, 81), 30, 81);
    expect_fits(text_of(state, 24, 80, Charset::ascii), 24, 80);
  }
}

TEST(LivePicture, OnePageHasAllParts) {
  const std::string page = page_of(sample_snapshot(), 100, Charset::utf8, false).text(false);
  for (const char* const part : {"Who talks to whom", "Objects", "Lines", "Loops", "Threads", "Findings", "Warnings"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_TRUE(page.ends_with("package\n")) << page;
  expect_fits(page, 400, 100);
}

TEST(CellBuffer, WideCharactersTakeTwoColumns) {
  CellBuffer cells(1, 6, Charset::utf8);
  EXPECT_EQ(cells.put(0, 0, "a日b"), 4);
  EXPECT_EQ(cells.at(0, 1).glyph, "日");
  EXPECT_EQ(cells.at(0, 2).glyph, "");
  EXPECT_EQ(cells.put(0, 5, "日"), 5);  // half of it would not fit
  EXPECT_EQ(cells.text(false), "a日b\n");
}

TEST(CellBuffer, MarksBelongToTheCharacterBefore) {
  CellBuffer cells(1, 6, Charset::utf8);
  EXPECT_EQ(cells.put(0, 0, "e\xcc\x81x"), 2);
  EXPECT_EQ(cells.at(0, 0).glyph, "e\xcc\x81");
}

TEST(CellBuffer, NothingIsWrittenOutside) {
  CellBuffer cells(2, 4, Charset::utf8);
  cells.put(-1, 0, "x");
  cells.put(2, 0, "x");
  cells.put(0, 9, "x");
  cells.paint(7, 0, 4, Ink::bar);
  EXPECT_EQ(cells.put(1, 2, "xyz"), 4);
  EXPECT_EQ(cells.text(false), "\n  xy\n");
}

}  // namespace
}  // namespace crosstalk::driver::live::live_picture_test
