// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "attribution/busy/loop_figures.h"
#include "driver/svg/busy.h"
#include "sample_analysis.h"

namespace crosstalk::driver::svg_busy_test {
namespace {

using namespace crosstalk;
using attribution::Analysis;
using attribution::LoopFigures;
using attribution::LoopRow;
using models::CycleClass;
using models::Unit;

LoopRow loop_named(const std::string& function, double share) {
  LoopFigures figures;
  figures.waits.at(CycleClass::committing) = 0.5;
  figures.waits.at(CycleClass::memory) = 1.5;
  figures.busy[Unit::memory] = {1.8, 0.9, 0.6, true};
  figures.busy[Unit::l3].exists = false;
  figures.reasons[Unit::l2] = "no address of it was sampled";
  figures.busy_class = {models::BusyClass::in_memory, "memory was busy for 90 % of the time"};
  LoopRow loop;
  loop.function = function;
  loop.file = "/src/triad.cpp";
  loop.line_begin = 12;
  loop.line_end = 14;
  loop.cpu_s = loop.self_s = 2;
  loop.share = share;
  loop.figures = std::make_shared<const LoopFigures>(figures);
  return loop;
}

Analysis analysis_with(std::vector<LoopRow> loops) {
  Analysis analysis = driver::test::sample_analysis();
  analysis.loops = std::move(loops);
  for (attribution::ThreadSummary& thread : analysis.threads) {
    models::CycleAccount account;
    account.at(CycleClass::lock) = 0.25;
    account.at(CycleClass::unattributed) = 0.75;
    thread.samples = 10;
    thread.waits = account;
  }
  return analysis;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

TEST(BusyPicture, ShowsUnitsPartsAndThreads) {
  const std::string svg = driver::render_busy_svg(analysis_with({loop_named("triad()", 0.8)}));
  for (const char* const part : {"triad() · triad.cpp:12-14", "limited by memory", "90.0 %", "memory: 1.50 s (75.0 %)",
                                 "L2 not known: no address of it was sampled", "locks: 250 ms (25.0 %)"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(count_of(svg, ">L3<"), 0U) << "this machine has none, and the loop waited for none";
}

TEST(BusyPicture, IsWellFormedWhateverNamesHold) {
  Analysis analysis = analysis_with({loop_named("sort<std::vector<int>&>(\"\x01\x1b[31m\xff\")", 0.8)});
  analysis.session.command = "run --filter '<a> & \"b\"' ]]>";
  const std::string svg = driver::render_busy_svg(analysis);
  EXPECT_NE(svg.find("sort&lt;std::vector&lt;int&gt;&amp;&gt;(&quot;"), std::string::npos);
  EXPECT_NE(svg.find("&lt;a&gt; &amp; &quot;b&quot;"), std::string::npos);
  EXPECT_TRUE(std::none_of(svg.begin(), svg.end(), [](char c) { return c > 0 && c < ' ' && c != '\n'; }));
  EXPECT_EQ(svg.find('\xff'), std::string::npos);
  for (const char* const element : {"text", "title", "svg"}) {
    EXPECT_EQ(count_of(svg, std::string("</") + element + ">"),
              count_of(svg, std::string("<") + element + " ") + count_of(svg, std::string("<") + element + ">"))
        << element;
  }
}

TEST(BusyPicture, IsOnePageOfTheHottestInnerLoops) {
  std::vector<LoopRow> loops(9);
  for (std::size_t i = 0; i < loops.size(); ++i) {
    loops[i] = loop_named("loop" + std::to_string(i) + "()", 0.1);
  }
  loops[0].self_s = 0;  // all of its time is that of a loop in it
  loops[8].share = 0.01;
  const std::string svg = driver::render_busy_svg(analysis_with(loops));
  EXPECT_EQ(count_of(svg, "loop0()"), 0U);
  EXPECT_EQ(count_of(svg, "loop5() · "), 1U);
  EXPECT_EQ(count_of(svg, "loop6() · "), 0U);
  EXPECT_NE(svg.find(R"(height="1123")"), std::string::npos);
}

TEST(BusyPicture, SaysWhatIsMissing) {
  LoopRow uncalibrated = loop_named("f()", 0.5);
  LoopFigures figures = *uncalibrated.figures;
  figures.busy_class = {};
  figures.busy = {};
  uncalibrated.figures = std::make_shared<const LoopFigures>(figures);
  EXPECT_NE(driver::render_busy_svg(analysis_with({uncalibrated})).find("crosstalk calibrate"), std::string::npos);
  EXPECT_NE(driver::render_busy_svg(analysis_with({})).find("No loop takes 3 %"), std::string::npos);
}

}  // namespace
}  // namespace crosstalk::driver::svg_busy_test
