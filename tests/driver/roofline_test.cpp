// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "driver/options/roofline_options.h"
#include "driver/roofline/labels.h"
#include "driver/roofline/picture.h"
#include "driver/roofline/report.h"
#include "driver/terminal/layout.h"
#include "driver/words/roofline_words.h"
#include "tests/attribution/roofline_example.h"

namespace crosstalk::driver::roofline_test {
namespace {

using attribution::RooflineModel;
using attribution::test::roofline_loop;

class RooflineReportTest : public ::testing::Test {
 protected:
  RooflineReport report(std::vector<attribution::LoopRow> loops) {
    analysis_.loops = std::move(loops);
    analysis_.cpu_s = 10;
    analysis_.session.command = "./solver <big>";
    return {&analysis_, &machine_, attribution::roofline_of(analysis_, machine_, model_, options_), nullptr};
  }
  RooflineReport three(RooflineModel model = RooflineModel::carm) {
    model_ = model;
    return report({roofline_loop(1, 2, 24, 10e9 / 24, 5), roofline_loop(2, 2, 24, 70e9 / 24, 3),
                   roofline_loop(3, 64, 8, 20e9 / 64, 1)});
  }
  RooflineModel model_ = RooflineModel::carm;
  attribution::RooflineOptions options_;
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
       {"loop_1 loops.cpp:1", "at memory", "L3 to L2", "1.43 x", "Roofs of loop 1 (one thread)", "0.0833"}) {
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
    EXPECT_EQ(loop["carm"]["roofs"].size(), 5U);
    EXPECT_TRUE(loop["mansard"]["unknown"].is_string());
    EXPECT_TRUE(loop["sparse"]["unknown"].is_string());
  }
}

/// Calls `check` with each number.
template <class Check>
void each_number(const nlohmann::json& json, const Check& check) {
  if (json.is_number()) {
    check(json.get<double>());
  }
  if (json.is_structured()) {
    for (const auto& member : json) {
      each_number(member, check);
    }
  }
}

TEST_F(RooflineReportTest, EachModelIsInEveryFormat) {
  for (const RooflineModel model : attribution::all_roofline_models) {
    const RooflineReport report = three(model);
    const std::string text = render_roofline_text(report, {100, Charset::ascii, false});
    EXPECT_NE(text.find(model_title(model)), std::string::npos) << text;
    const auto json = nlohmann::json::parse(render_roofline_json(report));
    EXPECT_EQ(json["model"], model_name(model));
    each_number(json, [](double number) { EXPECT_TRUE(std::isfinite(number)); });
    for (const std::string& form : {text, render_roofline_svg(report), render_roofline_csv(report)}) {
      EXPECT_EQ(form.find("nan"), std::string::npos) << model_name(model) << "\n" << form;
      EXPECT_EQ(form.find("inf "), std::string::npos) << model_name(model);
    }
    for (const auto& loop : json["loops"]) {
      EXPECT_NE(text.find(loop["function"].get<std::string>()), std::string::npos) << "text and JSON agree";
    }
  }
}

TEST_F(RooflineReportTest, TextAndJsonAgree) {
  for (const RooflineModel model : {RooflineModel::carm, RooflineModel::orm, RooflineModel::irm}) {
    const RooflineReport report = three(model);
    const std::string text = render_roofline_text(report, {120, Charset::ascii, false});
    const auto json = nlohmann::json::parse(render_roofline_json(report));
    for (const auto& loop : json["loops"]) {
      const auto& place = loop[model_name(model)];
      const double rate = place["points"][0]["y"]["value"].get<double>();
      EXPECT_NE(text.find(rate_in_words(rate, "flop/s")), std::string::npos) << rate;
      const double intensity = place["points"].back()["x"]["value"].get<double>();
      EXPECT_NE(text.find(intensity_in_words(intensity)), std::string::npos) << intensity;
      for (const auto& roof : place["roofs"]) {
        EXPECT_NE(text.find(roof["name"].get<std::string>()), std::string::npos);
      }
    }
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
  const std::string text = render_roofline_text(compared, {300, Charset::ascii, false});
  EXPECT_NE(text.find("It is 2.00 times as fast as before, 2.92 Gflop/s."), std::string::npos) << text;
  const auto json = nlohmann::json::parse(render_roofline_json(compared));
  EXPECT_TRUE(json["loops"][0]["before"].is_null());
  EXPECT_EQ(json["loops"][1]["before"]["id"], 2);
  EXPECT_NE(render_roofline_svg(compared).find("<title>before</title>"), std::string::npos);
  EXPECT_NE(change_in_words(before.loops[0], before.loops[0], RooflineModel::carm).find("as fast as before"),
            std::string::npos);
}

TEST_F(RooflineReportTest, AReorderedMatrixSpeedsUpByBalanceAndLocality) {
  const auto sparse = [&](double iterations_per_s, double at_work) {
    attribution::LoopRow loop = roofline_loop(1, 2, 20, iterations_per_s);
    auto figures = std::make_shared<attribution::LoopFigures>(*loop.figures);
    figures->body.emplace();
    figures->body->access_bytes = 20;
    figures->body->indirect_elements = 1;
    figures->body->indirect_bytes = 8;
    figures->threads = at_work;
    loop.figures = figures;
    loop.threads = {{0, 1, 1, 0, 0}, {1, at_work - 1, at_work - 1, 0, 0}};
    return loop;
  };
  machine_.processors.push_back({1, 1, 0, 0});
  machine_.flops.push_back(machine_.flops[0]);
  machine_.flops.back().scope = models::Scope::all_cores;
  models::Figure bandwidth = machine_.flops[0].flops_per_s;
  bandwidth.value = 20e9;
  machine_.sparse_roofs = {{models::Level::l2, models::Level::l1d, models::Scope::all_cores, 64, bandwidth}};
  attribution::Analysis earlier;
  earlier.loops = {sparse(1e8, 1.25)};
  const auto before = attribution::roofline_of(earlier, machine_, RooflineModel::sparse);
  model_ = RooflineModel::sparse;
  const RooflineReport after = report({sparse(1.5e8, 2)});
  ASSERT_EQ(before.loops.size(), 1U) << before.unplaced[0].why;
  ASSERT_EQ(after.roofline.loops.size(), 1U);
  const std::string words = change_in_words(before.loops[0], after.roofline.loops[0], model_);
  EXPECT_NE(words.find("by balance 1.60, by locality 1.50"), std::string::npos) << words;
}

TEST(RooflineWords, VectorsThatWinLessThanTheirWidthAreTold) {
  using models::roofline::Estimate;
  const auto loop_of = [](const attribution::LoopRow& row, double ipc) {
    attribution::RooflineLoop loop;
    loop.work.loop = &row;
    loop.work.own_s = 1;
    loop.work.mix = *row.figures->flops;
    const Estimate y = Estimate::exact(ipc, models::roofline::Basis::decoded).value();
    attribution::RooflinePlace place;
    place.points = {{std::nullopt, y, y}};
    loop.places.at(static_cast<std::size_t>(RooflineModel::mansard)) = place;
    return loop;
  };
  attribution::LoopRow scalar = roofline_loop(1, 2, 24, 1e9);
  auto figures = std::make_shared<attribution::LoopFigures>(*scalar.figures);
  figures->packed = 0;
  scalar.figures = figures;
  const attribution::LoopRow vector = roofline_loop(1, 2, 24, 1e9);
  const auto change = [&](double before, double after) {
    return change_in_words(loop_of(scalar, before), loop_of(vector, after), RooflineModel::mansard);
  };
  EXPECT_NE(change(4, 4).find("its vectors won in full"), std::string::npos) << change(4, 4);
  EXPECT_NE(change(4, 2).find("won in part, 50 %"), std::string::npos) << change(4, 2);
  EXPECT_NE(change(4, 1).find("won nothing"), std::string::npos) << "a quarter of the IPC, by four lanes";
  const auto both = change_in_words(loop_of(vector, 2), loop_of(vector, 3), RooflineModel::mansard);
  EXPECT_EQ(both.find("vectors"), std::string::npos) << "it had them before";
}

TEST_F(RooflineReportTest, CsvHasARowForEachLoop) {
  const std::string csv = render_roofline_csv(three());
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
  EXPECT_NE(csv.find("intensity.value,intensity.low"), std::string::npos);
}

/// Coordinates x1 y1 x2 y2 of all slanted lines that are drawn strong.
std::vector<std::array<double, 4>> slanted_lines(const std::string& svg) {
  static const std::regex line(
      R"re(<line x1="([0-9.-]+)" y1="([0-9.-]+)" x2="([0-9.-]+)" y2="([0-9.-]+)" stroke="#1d2229" stroke-width="2.0"/>)re");
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

TEST_F(RooflineReportTest, BandwidthRoofsHaveSlopeOne) {
  for (const RooflineModel model : {RooflineModel::carm, RooflineModel::hierarchical, RooflineModel::irm}) {
    const RooflineReport report = three(model);
    const std::string svg = render_roofline_svg(report);
    EXPECT_EQ(svg.find("./solver <big>"), std::string::npos) << "names are escaped";
    const PictureAxes axes = picture_of(report, 30).axes;
    const auto lines = slanted_lines(svg);
    ASSERT_EQ(lines.size(), 4U);
    // Decades for each unit of the page, by the drawn axes.
    static const std::regex vertical(
        R"re(<line x1="104.0" y1="([0-9.]+)" x2="104.0" y2="([0-9.]+)" stroke="#4a515b"/>)re");
    static const std::regex horizontal(
        R"re(<line x1="([0-9.]+)" y1="444.0" x2="([0-9.]+)" y2="444.0" stroke="#4a515b"/>)re");
    std::smatch height, width;
    ASSERT_TRUE(std::regex_search(svg, height, vertical) && std::regex_search(svg, width, horizontal));
    const double x_decades = (axes.x_high - axes.x_low) / (std::stod(width[2]) - std::stod(width[1]));
    const double y_decades = (axes.y_high - axes.y_low) / std::abs(std::stod(height[2]) - std::stod(height[1]));
    for (const auto& line : lines) {
      EXPECT_NEAR((line[1] - line[3]) * y_decades / ((line[2] - line[0]) * x_decades), 1, 1e-6);
    }
  }
}

/// The box of each text of a picture.
std::vector<std::pair<LabelBox, std::string>> texts(const std::string& svg) {
  static const std::regex text(
      R"re(<text x="([0-9.-]+)" y="([0-9.-]+)" font-size="([0-9.]+)" fill="[^"]*" text-anchor="([a-z]+)"([^>]*)>([^<]*)<)re");
  static const std::regex turned(R"re(rotate\((-?[0-9.]+) )re");
  std::vector<std::pair<LabelBox, std::string>> found;
  for (std::sregex_iterator it(svg.begin(), svg.end(), text), end; it != end; ++it) {
    LabelBox box{std::stod((*it)[1]), std::stod((*it)[2]), 0, std::stod((*it)[3]), 0};
    // A smaller estimate than the one that places them, since the page's coordinates are rounded.
    box.size *= 0.95;
    box.width = 0.5 * box.size * static_cast<double>(display_width((*it)[6].str()));
    const std::string anchor = (*it)[4], more = (*it)[5];
    box.x -= anchor == "end" ? box.width : anchor == "middle" ? box.width / 2 : 0;
    if (std::smatch angle; std::regex_search(more, angle, turned)) {
      box.degrees = -std::stod(angle[1]);
    }
    found.emplace_back(box, (*it)[6]);
  }
  return found;
}

TEST_F(RooflineReportTest, NoLabelsOverlapWithThirtyLoops) {
  for (const RooflineModel model : {RooflineModel::carm, RooflineModel::orm, RooflineModel::irm}) {
    model_ = model;
    std::vector<attribution::LoopRow> loops;
    for (std::uint32_t i = 0; i < 30; ++i) {
      loops.push_back(roofline_loop(i + 1, 2, 24 + i % 3, (40 + i) * 1e9 / 24, 0.3));
    }
    RooflineReport shown = report(loops);
    shown.chosen = true;
    const auto labels = texts(render_roofline_svg(shown));
    std::size_t numbers = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      numbers += std::regex_match(labels[i].second, std::regex("[0-9]+( [A-Za-z0-9]+)?")) ? 1 : 0;
      for (std::size_t k = 0; k < i; ++k) {
        EXPECT_FALSE(overlap(labels[i].first, labels[k].first))
            << model_name(model) << ": " << labels[i].second << " over " << labels[k].second;
      }
    }
    EXPECT_GE(numbers, 30U) << "each loop has its number";
  }
}

TEST_F(RooflineReportTest, LabelsAreLegibleAtEightyMillimetres) {
  const std::string svg = render_roofline_svg(three());
  std::smatch width;
  ASSERT_TRUE(std::regex_search(svg, width, std::regex(R"re(<svg [^>]*width="([0-9]+)")re")));
  const double points_per_unit = 80 / 25.4 * 72 / std::stod(width[1]);
  for (const auto& [box, words] : texts(svg)) {
    EXPECT_GE(box.size / 0.95 * points_per_unit, 5.6) << words;
  }
  static const std::regex paint("(fill|stroke)=\"#([0-9a-f]{6})\"");
  for (std::sregex_iterator it(svg.begin(), svg.end(), paint), end; it != end; ++it) {
    const auto color = std::stoul((*it)[2], nullptr, 16);
    const unsigned red = color >> 16, green = color >> 8 & 255, blue = color & 255;
    EXPECT_LT(std::max({red, green, blue}) - std::min({red, green, blue}), 48) << "it is nearly grey already";
  }
}

TEST_F(RooflineReportTest, LoopsThatCannotBePlacedBreakNoFormat) {
  attribution::LoopRow one_sample = roofline_loop(1, 2, 24, 1e9);
  one_sample.rates.iterations = {std::nullopt, std::nullopt, "too few samples"};
  for (const RooflineModel model : attribution::all_roofline_models) {
    model_ = model;
    for (const attribution::LoopRow& loop : {one_sample, roofline_loop(2, 0, 24, 1e9), roofline_loop(3, 2, 0, 1e9)}) {
      const RooflineReport shown = report({loop});
      if (!shown.roofline.loops.empty()) {
        continue;
      }
      ASSERT_EQ(shown.roofline.unplaced.size(), 1U);
      const std::string& why = shown.roofline.unplaced[0].why;
      EXPECT_EQ(why.find('\n'), std::string::npos);
      EXPECT_NE(render_roofline_svg(shown).find("No loop has a place"), std::string::npos);
      EXPECT_FALSE(render_roofline_text(shown, {80, Charset::ascii, false}).empty());
      EXPECT_TRUE(nlohmann::json::parse(render_roofline_json(shown))["loops"].empty());
    }
  }
}

TEST(RooflineOptions, AreReadAndRefused) {
  const auto parsed = parse_roofline({"--model", "irm", "--format", "svg", "-o", "r.svg", "--loop", "7", "run.db"});
  ASSERT_TRUE(parsed && parsed->request);
  EXPECT_EQ(parsed->request->model, RooflineModel::irm);
  EXPECT_EQ(parsed->request->loop, 7U);
  EXPECT_EQ(parsed->request->input, "run.db");
  const auto more = parse_roofline({"--ops", "int", "--by", "thread", "--threads", "8"});
  ASSERT_TRUE(more && more->request);
  EXPECT_EQ(more->request->roofs.ops, attribution::CountedOperations::integer);
  EXPECT_TRUE(more->request->roofs.by_thread);
  EXPECT_EQ(more->request->roofs.threads, 8U);
  const auto ceilings = parse_roofline({"--model", "orm", "--imbalance", "last"});
  ASSERT_TRUE(ceilings && ceilings->request);
  EXPECT_EQ(ceilings->request->roofs.imbalance, models::roofline::ImbalanceOrder::last);
  EXPECT_FALSE(parse_roofline({"--imbalance", "last"})) << "only of one model";
  EXPECT_FALSE(parse_roofline({"--threads", "0"}));
  EXPECT_FALSE(parse_roofline({"--threads", "many"}));
  EXPECT_FALSE(parse_roofline({"--ops", "fp16"}));
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
