// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "driver/options/roofline_options.h"
#include "driver/roofline/report.h"
#include "driver/words/roofline_words.h"
#include "tests/attribution/roofline_example.h"

namespace crosstalk::driver::roofline_test {
namespace {

using attribution::test::roofline_loop;

class RooflineReportTest : public ::testing::Test {
 protected:
  RooflineReport report(std::vector<attribution::LoopRow> loops) {
    analysis_.loops = std::move(loops);
    analysis_.cpu_s = 10;
    analysis_.session.command = "./solver <big>";
    return {&analysis_, &machine_, attribution::roofline_of(analysis_, machine_), RooflineModel::carm, nullptr};
  }
  RooflineReport three() {
    return report({roofline_loop(1, 2, 24, 10e9 / 24, 5), roofline_loop(2, 2, 24, 70e9 / 24, 3),
                   roofline_loop(3, 64, 8, 20e9 / 64, 1)});
  }
  attribution::Analysis analysis_;
  models::Machine machine_ = attribution::test::roofline_machine();
};

TEST_F(RooflineReportTest, TextFitsTheTerminalAndNamesLoopsAndRoofs) {
  for (const int width : {60, 80, 120}) {
    for (const Charset charset : {Charset::ascii, Charset::utf8}) {
      std::istringstream lines(render_roofline_text(three(), {width, charset, false}));
      for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(display_width(line), width) << line;
      }
    }
  }
  const std::string text = render_roofline_text(three(), {100, Charset::ascii, false});
  for (const char* const words :
       {"loop_1 loops.cpp:1", "at memory", "L3 to L2", "1.43 x", "Roofs of one thread", "0.0833"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
}

TEST_F(RooflineReportTest, TextWithoutAPlacedLoopSaysWhy) {
  const std::string text = render_roofline_text(report({roofline_loop(1, 0, 24, 1e9)}), {100, Charset::ascii, false});
  EXPECT_NE(text.find("it does no floating-point operation"), std::string::npos) << text;
}

TEST_F(RooflineReportTest, JsonHasEstimatesWithTheirBasis) {
  const auto json = nlohmann::json::parse(render_roofline_json(three()));
  EXPECT_EQ(json["schema"], "crosstalk.roofline/1");
  ASSERT_EQ(json["loops"].size(), 3U);
  EXPECT_EQ(json["loops"][0]["intensity"]["basis"], "decoded");
  EXPECT_NEAR(json["loops"][0]["intensity"]["value"].get<double>(), 2.0 / 24, 1e-12);
  EXPECT_EQ(json["loops"][0]["carm"]["reached"][0], "memory");
  EXPECT_EQ(json["loops"][0]["irm"]["bottleneck"], "memory");
  EXPECT_EQ(json["loops"][1]["carm"]["above"]["roof"], "L2");
  for (const auto& loop : json["loops"]) {
    EXPECT_FALSE(loop["verdict"].get<std::string>().empty());
    EXPECT_EQ(loop["roofs"].size(), 5U);
  }
}

TEST_F(RooflineReportTest, AnEarlierProfileIsComparedWith) {
  attribution::Analysis earlier;
  earlier.loops = {roofline_loop(2, 2, 24, 35e9 / 24, 3)};
  const attribution::Roofline before = attribution::roofline_of(earlier, machine_);
  RooflineReport compared = three();
  compared.against = &before;
  EXPECT_EQ(former(compared, compared.roofline.loops[0]), nullptr) << "another loop";
  ASSERT_NE(former(compared, compared.roofline.loops[1]), nullptr);
  const std::string text = render_roofline_text(compared, {120, Charset::ascii, false});
  EXPECT_NE(text.find("It is 2.00 times as fast as before, 2.92 Gflop/s."), std::string::npos) << text;
  const auto json = nlohmann::json::parse(render_roofline_json(compared));
  EXPECT_TRUE(json["loops"][0]["before"].is_null());
  EXPECT_EQ(json["loops"][1]["before"]["id"], 2);
  EXPECT_NE(render_roofline_svg(compared).find("<title>before</title>"), std::string::npos);
  EXPECT_NE(change_in_words(before.loops[0], before.loops[0]).find("as fast as before"), std::string::npos);
}

TEST_F(RooflineReportTest, CsvHasARowForEachLoop) {
  const std::string csv = render_roofline_csv(three());
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
  EXPECT_NE(csv.find("intensity.value,intensity.low"), std::string::npos);
}

/// Coordinates x1 y1 x2 y2 of all dark slanted lines.
std::vector<std::array<double, 4>> slanted_lines(const std::string& svg) {
  static const std::regex line(
      R"re(<line x1="([0-9.-]+)" y1="([0-9.-]+)" x2="([0-9.-]+)" y2="([0-9.-]+)" stroke="#1d2229")re");
  std::vector<std::array<double, 4>> found;
  for (std::sregex_iterator it(svg.begin(), svg.end(), line), end; it != end; ++it) {
    const std::array<double, 4> at = {std::stod((*it)[1]), std::stod((*it)[2]), std::stod((*it)[3]),
                                      std::stod((*it)[4])};
    if (at[0] != at[2] && at[1] != at[3]) {
      found.push_back(at);
    }
  }
  return found;
}

TEST_F(RooflineReportTest, BandwidthRoofsAreParallelInThePicture) {
  const std::string svg = render_roofline_svg(three());
  EXPECT_EQ(svg.find("./solver <big>"), std::string::npos) << "names are escaped";
  const auto lines = slanted_lines(svg);
  ASSERT_EQ(lines.size(), 4U);
  const auto slope = [](const auto& at) { return (at[1] - at[3]) / (at[2] - at[0]); };
  for (const auto& line : lines) {
    EXPECT_NEAR(slope(line) / slope(lines[0]), 1, 0.01);
  }
}

/// Places x y of all upright texts of that size.
std::vector<std::pair<double, double>> bold_numbers(const std::string& svg) {
  static const std::regex text(
      R"re(<text x="([0-9.-]+)" y="([0-9.-]+)" font-size="14.0"[^>]*font-weight="600">[0-9]+<)re");
  std::vector<std::pair<double, double>> found;
  for (std::sregex_iterator it(svg.begin(), svg.end(), text), end; it != end; ++it) {
    found.emplace_back(std::stod((*it)[1]), std::stod((*it)[2]));
  }
  return found;
}

TEST_F(RooflineReportTest, NumbersOfThirtyLoopsDoNotOverlap) {
  std::vector<attribution::LoopRow> loops;
  for (std::uint32_t i = 0; i < 30; ++i) {
    loops.push_back(roofline_loop(i + 1, 2, 24 + i % 3, 70e9 / 24, 0.3));
  }
  const auto numbers = bold_numbers(render_roofline_svg(report(loops)));
  ASSERT_EQ(numbers.size(), 30U);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      EXPECT_FALSE(std::abs(numbers[i].first - numbers[k].first) < 19 &&
                   std::abs(numbers[i].second - numbers[k].second) < 14)
          << i << " " << k;
    }
  }
}

TEST(RooflineOptions, AreReadAndRefused) {
  const auto parsed = parse_roofline({"--model", "irm", "--format", "svg", "-o", "r.svg", "--loop", "7", "run.db"});
  ASSERT_TRUE(parsed && parsed->request);
  EXPECT_EQ(parsed->request->model, RooflineModel::irm);
  EXPECT_EQ(parsed->request->loop, 7U);
  EXPECT_EQ(parsed->request->input, "run.db");
  EXPECT_FALSE(parse_roofline({"--loop", "-1"}));
  EXPECT_FALSE(parse_roofline({"--model", "top-down"}));
  EXPECT_FALSE(parse_roofline({"-i", "a.db", "b.db"}));
}

TEST(RooflineWords, RatesHaveThreeDigits) {
  EXPECT_EQ(rate_in_words(34.3e9, "flop/s"), "34.3 Gflop/s");
  EXPECT_EQ(rate_in_words(1.5e12, "B/s"), "1.5 TB/s");
  EXPECT_EQ(rate_in_words(0, "B/s"), "0 B/s");
}

}  // namespace
}  // namespace crosstalk::driver::roofline_test
