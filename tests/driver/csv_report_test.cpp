// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "attribution/busy/loop_figures.h"
#include "driver/csv/field.h"
#include "driver/csv/report.h"
#include "sample_analysis.h"

namespace crosstalk::driver::csv_report_test {
namespace {

/// Fields of each row, by the rules of RFC 4180.
std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      rows.back().back() += text[++i];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == ',' && !quoted) {
      rows.back().emplace_back();
    } else if (text[i] == '\n' && !quoted) {
      rows.emplace_back(1);
    } else {
      rows.back().back() += text[i];
    }
  }
  rows.pop_back();
  return rows;
}

TEST(CsvReport, EveryViewIsOneRectangularTable) {
  for (const View view : {View::summary, View::matrix, View::lines, View::objects, View::loops, View::busy,
                          View::memory, View::threads}) {
    const auto rows = rows_of(render_csv(test::sample_analysis(), view));
    ASSERT_GT(rows.size(), 1U);
    for (const auto& row : rows) {
      EXPECT_EQ(row.size(), rows.front().size());
    }
  }
}

TEST(CsvReport, ATableWithoutRowsHasItsHeader) {
  const attribution::Analysis nothing;
  attribution::Grouping cores;
  cores.by = attribution::GroupBy::core;
  for (const View view : {View::matrix, View::lines, View::objects, View::loops, View::threads, View::regions}) {
    const auto rows = rows_of(render_csv(nothing, view));
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_GT(rows[0].size(), 5U);
  }
  const auto rows = rows_of(render_csv(nothing, View::matrix, &cores));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].back(), "within");
}

TEST(CsvReport, MatrixHasTheNamesOfTheJsonReport) {
  const auto rows = rows_of(render_csv(test::sample_analysis(), View::matrix));
  const auto column = [&rows](const char* name) {
    return static_cast<std::size_t>(std::find(rows[0].begin(), rows[0].end(), name) - rows[0].begin());
  };
  ASSERT_EQ(rows.size(), 8U);
  EXPECT_EQ(rows[1][column("producer")], "1");
  EXPECT_EQ(rows[1][column("consumer")], "2");
  EXPECT_EQ(rows[1][column("false.cost_s")], "0.412");
  EXPECT_EQ(rows[1][column("true.cost_s")], "");  // unknown
}

TEST(CsvReport, MemoryHasARowForEachPart) {
  const auto rows = rows_of(render_csv(test::sample_analysis(), View::memory));
  const auto column = [&rows](const char* name) {
    return static_cast<std::size_t>(std::find(rows[0].begin(), rows[0].end(), name) - rows[0].begin());
  };
  const auto row_of = [&](const char* part) {
    return std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row[0] == part; });
  };
  for (const char* part : {"total", "shared_total", "source", "line", "object", "loop", "shared_line", "shared_offset",
                           "sampled_pair", "limit"}) {
    EXPECT_NE(row_of(part), rows.end()) << part;
  }
  EXPECT_EQ((*row_of("source"))[column("level")], "l3");
  EXPECT_EQ((*row_of("shared_offset"))[column("field")], "[1].hits");
  EXPECT_EQ((*row_of("shared_offset"))[column("threads")], "1 3");
  EXPECT_EQ((*row_of("sampled_pair"))[column("hitm")], "8000");
  EXPECT_EQ((*row_of("total"))[column("cost_s")], "") << "no frequency is known";
}

TEST(CsvReport, MemoryThatIsNotKnownSaysWhy) {
  auto analysis = test::sample_analysis();
  analysis.memory = {};
  analysis.memory.unknown = "samples are of a clock";
  const auto rows = rows_of(render_csv(analysis, View::memory));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1][0], "unknown");
  EXPECT_EQ(rows[1][1], "samples are of a clock");
}

TEST(CsvReport, ACountThatIsNotKnownSaysWhy) {
  auto analysis = test::sample_analysis();
  analysis.communication.cells[0].true_sharing.count = 1200;
  analysis.communication.cells[0].false_sharing.count_unknown = "none was seen";
  const auto rows = rows_of(render_csv(analysis, View::matrix));
  const auto field = [&rows](const char* name) {
    return rows[1][static_cast<std::size_t>(std::find(rows[0].begin(), rows[0].end(), name) - rows[0].begin())];
  };
  EXPECT_EQ(field("true.count"), "1200");
  EXPECT_EQ(field("true.count_unknown"), "");
  EXPECT_EQ(field("false.count"), "");
  EXPECT_EQ(field("false.count_unknown"), "none was seen");
}

TEST(CsvReport, ByCoreIsAnotherTable) {
  const auto cores = attribution::group(test::sample_analysis(), attribution::GroupBy::core);
  ASSERT_TRUE(cores);
  EXPECT_EQ(rows_of(render_csv(test::sample_analysis(), View::matrix, &*cores)).size(), 3U);
}

TEST(CsvReport, ARowOfAGroupSaysWhetherItIsWithin) {
  const auto analysis = test::sample_analysis();
  const auto names = attribution::group(analysis, attribution::GroupBy::name);
  ASSERT_TRUE(names);
  const auto rows = rows_of(render_csv(analysis, View::matrix, &*names));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].back(), "within");
  EXPECT_EQ(rows[1][0], "worker");
  EXPECT_EQ(rows[1].back(), "1");
  const auto threads = rows_of(render_csv(analysis, View::threads, &*names));
  ASSERT_EQ(threads.size(), 3U);
  EXPECT_EQ(threads[0][1], "threads");
  EXPECT_EQ(threads[2][1], "4");
}

TEST(CsvReport, LoopsHaveBusyTimesClassesAndAccounts) {
  auto analysis = test::sample_analysis();
  attribution::LoopFigures figures;
  figures.busy[models::Unit::memory] = {0.4, 0.8, 0.7};
  figures.per_s[models::Unit::memory] = 2e10;
  figures.busy_class = {models::BusyClass::in_memory, "Memory was busy."};
  figures.waits.at(models::CycleClass::memory) = 0.3;
  figures.waits.at(models::CycleClass::unattributed) = 0.2;
  figures.imbalance = 0.25;
  analysis.loops[0].figures = std::make_shared<attribution::LoopFigures>(figures);
  const auto rows = rows_of(render_csv(analysis, View::busy));
  const auto field = [&rows](std::size_t row, const char* name) {
    const auto column = std::find(rows[0].begin(), rows[0].end(), name);
    EXPECT_NE(column, rows[0].end()) << name;
    return column == rows[0].end() ? "" : rows.at(row)[static_cast<std::size_t>(column - rows[0].begin())];
  };
  EXPECT_EQ(field(1, "busy.memory.seconds"), "0.4");
  EXPECT_EQ(field(1, "busy.memory.of_effective"), "0.8");
  EXPECT_EQ(field(1, "busy.memory.of_theoretical"), "0.7");
  EXPECT_EQ(field(1, "busy.memory.per_s"), "20000000000");
  EXPECT_EQ(field(1, "busy.fpu"), "") << "not known: an object that is null in every row";
  EXPECT_EQ(field(1, "class"), "in_memory");
  EXPECT_EQ(field(1, "waits.memory"), "0.3");
  EXPECT_EQ(field(1, "waits.unattributed"), "0.2");
  EXPECT_EQ(field(1, "waits.lock"), "") << "no evidence tells of it";
  EXPECT_EQ(field(1, "shape.imbalance"), "0.25");
  for (const char* const name : {"busy.memory.seconds", "class", "waits.unattributed", "shape.threads"}) {
    EXPECT_EQ(field(2, name), "") << "of a loop without figures: " << name;
  }
  EXPECT_EQ(render_csv(analysis, View::loops), render_csv(analysis, View::busy));
}

TEST(CsvReport, ThreadsHaveAccounts) {
  auto analysis = test::sample_analysis();
  models::CycleAccount waits;
  waits.at(models::CycleClass::barrier) = 0.5;
  analysis.threads[1].waits = waits;
  const auto rows = rows_of(render_csv(analysis, View::threads));
  const auto column =
      static_cast<std::size_t>(std::find(rows[0].begin(), rows[0].end(), "waits.barrier") - rows[0].begin());
  ASSERT_LT(column, rows[0].size());
  EXPECT_EQ(rows[1][column], "");
  EXPECT_EQ(rows[2][column], "0.5");
}

// The sum of a table's cells is no column beside them: a spreadsheet would add it once for each cell.
TEST(CsvReport, CostsOfRowsAreNotRepeatedForTheirCells) {
  const auto analysis = test::sample_analysis();
  for (const View view : {View::lines, View::objects}) {
    const auto rows = rows_of(render_csv(analysis, view));
    EXPECT_EQ(std::count(rows[0].begin(), rows[0].end(), "cost_s"), 0);
  }
  const auto rows = rows_of(render_csv(analysis, View::objects));
  const auto column = std::find(rows[0].begin(), rows[0].end(), "false.cost_s") - rows[0].begin();
  EXPECT_NE(std::find(rows[0].begin(), rows[0].end(), "blocks"), rows[0].end());
  double sum = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string& field = rows[i][static_cast<std::size_t>(column)];
    sum += rows[i][0] == "counters" && !field.empty() ? std::stod(field) : 0;
  }
  EXPECT_DOUBLE_EQ(sum, 0.81);
}

TEST(CsvReport, QuotesWhatNeedsIt) {
  EXPECT_EQ(csv_field("a"), "a");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(csv_field("a\nb"), "\"a\nb\"");
  EXPECT_EQ(csv_field("a\tb"), "a\tb");
}

// Nor must it compute in a spreadsheet.
TEST(CsvReport, FormulasAreText) {
  EXPECT_EQ(csv_field("=1+1"), "'=1+1");
  EXPECT_EQ(csv_field("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(csv_field("-cmd|' /C calc'!A0"), "'-cmd|' /C calc'!A0");
  EXPECT_EQ(csv_field("-0.25"), "-0.25");
  EXPECT_EQ(csv_field("operator=="), "operator==");
}

// A thread's name is the program's: shown on a terminal, it must not drive it.
TEST(CsvReport, ControlCharactersAreSpelled) {
  EXPECT_EQ(csv_field("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(csv_field("a\rb\x7f"), "a\\x0db\\x7f");
  EXPECT_EQ(csv_field("\xc2\x9b"
                      "2J"),
            "\\x9b2J");
  EXPECT_EQ(csv_field("\xc2\xa0\xc3\xa9"), "\xc2\xa0\xc3\xa9");
  EXPECT_EQ(csv_field("\x1b,"), "\"\\x1b,\"");
}

TEST(CsvField, IsUtf8) {
  EXPECT_EQ(csv_field("na\xc3"), "na\xef\xbf\xbd");
  EXPECT_EQ(csv_field("n\xc3\xa4me"), "n\xc3\xa4me");
}

}  // namespace
}  // namespace crosstalk::driver::csv_report_test
