// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string>

#include "driver/text/report.h"
#include "sample_analysis.h"
#include "text_lines.h"

namespace crosstalk::driver::text_report_test {
namespace {

using test::lines_of;

constexpr std::array all_views = {View::summary, View::matrix, View::lines,  View::objects,
                                  View::loops,   View::memory, View::threads};

std::string without_escapes(const std::string& text) {
  static const std::regex escape("\x1b\\[[0-9;]*m");
  return std::regex_replace(text, escape, "");
}

TEST(TextReport, FitsTheWidthInEveryViewAndCharset) {
  for (const std::uint32_t threads : {0U, 9U, 30U, 500U}) {
    auto analysis = threads == 0 ? test::sample_analysis() : test::crowded_analysis(threads);
    for (attribution::LoopRow& loop : analysis.loops) {
      loop.rates.iterations.per_s = 1e9;
    }
    for (attribution::ThreadSummary& thread : analysis.threads) {
      thread.name = "a name of a thread that is longer than the kernel has it";
    }
    for (const View view : all_views) {
      for (const int width : {60, 72, 80, 100, 200}) {
        for (const Charset charset : {Charset::utf8, Charset::ascii}) {
          for (const std::string& line : lines_of(render_text(analysis, view, nullptr, {width, charset, false}))) {
            EXPECT_LE(display_width(line), width) << line;
            EXPECT_TRUE(line.empty() || line.back() != ' ') << "'" << line << "'";
          }
        }
      }
    }
  }
}

TEST(TextReport, MemoryOfSamples) {
  auto analysis = test::sample_analysis();
  const std::string text = render_text(analysis, View::memory, nullptr, {100, Charset::ascii, false});
  for (const char* words :
       {"60 accesses sampled, 40 loads and 20 stores: 40 of cpu/mem-loads,ldlat=30/P", "L3 cache",
        "10 of 40 loads (25.0 %) found the line modified in another cache (HITM)", "Accesses by source line",
        "histogram.cpp:41", "counters, 64 B", "histogram.cpp:40-43", "3 lines: 30 loads and 20 stores",
        "0x7f0000001200", "[1].hits, threads 1,3 of node 0, cycles: HITM 310", "8.00 k (3.50 k to 16.0 k)",
        "1 worker -> 2 worker", "For 2 of 10 sampled HITM loads no other thread",
        "only loads that take 30 cycles and more."}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
  analysis.memory = {};
  analysis.memory.unknown = "samples are of a clock";
  EXPECT_NE(render_text(analysis, View::memory, nullptr, {}).find("Nothing is known: samples are of a clock."),
            std::string::npos);
}

TEST(TextReport, SaysHowManyProcessesThereWere) {
  auto analysis = test::sample_analysis();
  const auto shown = [&](const char* words) {
    return render_text(analysis, View::threads, nullptr, {100, Charset::ascii, false}).find(words) != std::string::npos;
  };
  EXPECT_FALSE(shown("process")) << "one";
  analysis.processes = {3, analysis.processes.front()};
  analysis.processes[1].pid += 1;
  analysis.processes[2].pid += 1;  // it has executed another program
  EXPECT_TRUE(shown(", 2 processes, ")) << render_text(analysis, View::threads, nullptr, {});
}

TEST(TextReport, SaysHowOftenAClockReallyRang) {
  auto analysis = test::sample_analysis();
  attribution::SamplingSummary::Event clock{"posix-cpu-timer", 4'000'000, "ns", 500, "clock"};
  analysis.cpu_s = 4;
  const auto told = [&] {
    analysis.sampling.events = {clock};
    return render_text(analysis, View::summary, nullptr, {400, Charset::ascii, false});
  };
  EXPECT_NE(told().find("of posix-cpu-timer every 4.00 ms (8.00 ms on average), "), std::string::npos) << told();
  clock.samples = 900;
  EXPECT_NE(told().find("of posix-cpu-timer every 4.00 ms, "), std::string::npos) << told();
}

TEST(TextReport, HowProcessesWereObservedWhereItIsNotTheUsualWay) {
  auto analysis = test::sample_analysis();
  const auto shown = [&](const char* words) {
    const std::string text = render_text(analysis, View::threads, nullptr, {400, Charset::ascii, false});
    return text.find(words) != std::string::npos;
  };
  analysis.processes = {4, analysis.processes.front()};
  analysis.processes[1].observation = profile::Observation::preloaded;
  EXPECT_FALSE(shown("collector")) << "nothing is known of the others";
  for (profile::ProcessRow& process : analysis.processes) {
    process.observation = profile::Observation::preloaded;
  }
  EXPECT_FALSE(shown("collector"));
  analysis.processes[2].observation = profile::Observation::outside;
  analysis.processes[3].observation = profile::Observation::none;
  EXPECT_TRUE(
      shown(" 2 processes had the collector from their start, 1 was watched from outside, 1 was not observed."));
  analysis.processes = {1, analysis.processes[3]};
  analysis.processes[0].observation = profile::Observation::injected;
  EXPECT_TRUE(shown(" 1 process had the collector brought in."));
}

TEST(TextReport, ColoursAddNothingButEscapes) {
  const auto analysis = test::sample_analysis();
  for (const View view : {View::summary, View::loops, View::threads}) {
    const std::string plain = render_text(analysis, view, nullptr, {100, Charset::utf8, false});
    const std::string colored = render_text(analysis, view, nullptr, {100, Charset::utf8, true});
    EXPECT_EQ(plain.find('\x1b'), std::string::npos);
    EXPECT_NE(colored.find('\x1b'), std::string::npos);
    for (const std::string& line : lines_of(colored)) {
      EXPECT_LE(display_width(without_escapes(line)), 100) << line;
    }
  }
}

TEST(TextReport, AsciiIsAscii) {
  for (const View view : all_views) {
    for (const char c : render_text(test::sample_analysis(), view, nullptr, {100, Charset::ascii, true})) {
      EXPECT_LT(static_cast<unsigned char>(c), 0x80);
    }
  }
}

TEST(TextReport, IsTheSameEachTime) {
  const TextStyle style;
  EXPECT_EQ(render_text(test::sample_analysis(), View::summary, nullptr, style),
            render_text(test::sample_analysis(), View::summary, nullptr, style));
}

TEST(TextReport, SummarySaysTheFindingsFirst) {
  const std::string text = render_text(test::sample_analysis(), View::summary, nullptr, {});
  const auto at = [&text](const char* words) { return text.find(words); };
  EXPECT_EQ(at("./histogram --threads 4"), 0U);
  EXPECT_LT(at("false\n    sharing"), at("Who talks to whom"));
  EXPECT_LT(at("Who talks to whom"), at("Source lines"));
  EXPECT_LT(at("Source lines"), at("Objects"));
  EXPECT_LT(at("Objects"), at("Loops"));
  EXPECT_LT(at("Loops"), at("Threads"));
  EXPECT_NE(at("Warnings"), std::string::npos);
}

TEST(TextReport, MatrixRowsProduceAndColumnsConsume) {
  const auto lines = lines_of(render_text(test::sample_analysis(), View::matrix, nullptr, {}));
  const auto row =
      std::find_if(lines.begin(), lines.end(), [](const std::string& line) { return line.starts_with("  3 worker"); });
  ASSERT_NE(row, lines.end());
  EXPECT_NE(row->find("231ms t"), std::string::npos);  // 3 -> 4
  EXPECT_GT(row->find("231ms t"), row->rfind("·"));    // in the last column
}

TEST(TextReport, ACellThatWasHardlySeenHasOneDigit) {
  auto analysis = test::sample_analysis();
  const auto text = [&] { return render_text(analysis, View::matrix, nullptr, {}); };
  EXPECT_EQ(text().find('~'), std::string::npos) << text();
  attribution::Cell& cell = analysis.communication.cells.front();
  cell.true_sharing.seen = 2;
  cell.true_sharing.cost_s = 0.231;
  cell.false_sharing = {};
  EXPECT_NE(text().find("~200ms t"), std::string::npos) << text();
  EXPECT_NE(text().find("~ seen fewer"), std::string::npos) << text();
}

TEST(TextReport, ManyThreadsAreFoldedIntoGroups) {
  const std::string text = render_text(test::crowded_analysis(500), View::matrix, nullptr, {});
  EXPECT_NE(text.find("0-12"), std::string::npos);
  EXPECT_NE(text.find("folded"), std::string::npos);
}

TEST(TextReport, MatrixByCoreNamesProcessors) {
  const auto analysis = test::sample_analysis();
  const auto groups = attribution::group(analysis, attribution::GroupBy::core);
  ASSERT_TRUE(groups);
  const std::string text = render_text(analysis, View::matrix, &*groups, {});
  EXPECT_NE(text.find("each is listed as a core"), std::string::npos);  // the sample has no topology
  EXPECT_NE(text.find("cpu 1"), std::string::npos);
}

TEST(TextReport, GroupsShowWhatIsExchangedWithinThem) {
  auto analysis = test::sample_analysis();
  for (std::uint32_t i = 1; i < 5; ++i) {
    analysis.threads[i].name = "worker-" + std::to_string(i);
  }
  const auto groups = attribution::group(analysis, attribution::GroupBy::name);
  ASSERT_TRUE(groups);
  for (const int width : {60, 80, 100}) {
    for (const View view : {View::summary, View::matrix, View::threads}) {
      for (const std::string& line : lines_of(render_text(analysis, view, &*groups, {width, Charset::utf8, false}))) {
        EXPECT_LE(display_width(line), width) << line;
      }
    }
  }
  const std::string matrix = render_text(analysis, View::matrix, &*groups, {});
  EXPECT_NE(matrix.find("1 worker-*"), std::string::npos) << matrix;
  EXPECT_NE(matrix.find("On the diagonal: within"), std::string::npos) << matrix;
  const std::string threads = render_text(analysis, View::threads, &*groups, {});
  EXPECT_NE(threads.find("4  worker-*"), std::string::npos) << threads;
  EXPECT_EQ(threads.find("worker-1"), std::string::npos);
}

TEST(TextReport, AFindingHasTheCallsOfTheProgramsOwnCode) {
  auto analysis = test::sample_analysis();
  analysis.findings[0].object = "counters";
  attribution::LineRow& row = analysis.communication.lines[0];
  row.call_paths[0].frames.push_back({"main", {"/src/main.cpp", 60}, false});
  row.call_paths[0].frames.push_back({"__libc_start_main", {}, false});
  const auto calls = [&analysis](int width) {
    for (const std::string& line :
         lines_of(render_text(analysis, View::summary, nullptr, {width, Charset::utf8, false}))) {
      if (line.find("accessed: ") != std::string::npos) {
        return line;
      }
    }
    return std::string();
  };
  EXPECT_TRUE(calls(160).ends_with("histogram.cpp:41 ← worker(int) main.cpp:20 ← main() main.cpp:60")) << calls(160);
  EXPECT_TRUE(calls(100).ends_with("← worker(int) main.cpp:20 ← …")) << calls(100);
}

TEST(TextReport, WhyItIsNotTheBetterSourceIsSaidWhereTheMachineHasOne) {
  auto analysis = test::sample_analysis();
  const auto said = [&](const std::string& choice) {
    analysis.sampling.source_choice = choice;
    return std::regex_replace(render_text(analysis, View::summary, nullptr, {}), std::regex("\\s+"), " ");
  };
  EXPECT_NE(said("pebs: not for you; clock: chosen in place of pebs")
                .find("Sources: pebs: not for you; clock: chosen in place of pebs."),
            std::string::npos);
  EXPECT_EQ(said("pebs: not an Intel processor; clock: chosen").find("Sources:"), std::string::npos);
}

TEST(TextReport, AFilterIsInTheHead) {
  auto analysis = test::sample_analysis();
  analysis.filter = "--thread 3";
  for (const View view : all_views) {
    EXPECT_NE(render_text(analysis, view, nullptr, {}).find("filtered: --thread 3; shares are of the whole program"),
              std::string::npos);
  }
  for (attribution::ThreadSummary& thread : analysis.threads) {
    thread.listed = thread.index == 3;
  }
  const std::string threads = render_text(analysis, View::threads, nullptr, {});
  EXPECT_NE(threads.find("3 worker"), std::string::npos);
  EXPECT_EQ(threads.find("2 worker"), std::string::npos);
}

TEST(TextReport, NothingSeenIsSaidNotDrawn) {
  auto analysis = test::sample_analysis();
  analysis.communication = {};
  EXPECT_NE(render_text(analysis, View::summary, nullptr, {}).find("No communication was seen on 402"),
            std::string::npos);
  analysis.sampling.armed = 0;
  EXPECT_NE(render_text(analysis, View::summary, nullptr, {}).find("Not known"), std::string::npos);
}

TEST(TextReport, WhereNothingCouldBeWatchedThatIsSaid) {
  auto analysis = test::sample_analysis();
  analysis.communication = {};
  analysis.sight.sees = attribution::WatchSight::Sees::nothing;
  const std::string text = render_text(analysis, View::summary, nullptr, {});
  EXPECT_NE(text.find("Not known: crosstalk could not watch memory here"), std::string::npos) << text;
  EXPECT_EQ(text.find("No communication was seen"), std::string::npos) << text;
}

TEST(TextReport, SaysWhatTheSelfTestOfWatchpointsFound) {
  auto analysis = test::sample_analysis();
  const auto says = [&](const char* sentence) {
    return render_text(analysis, View::threads, nullptr, {200, Charset::ascii, false}).find(sentence) !=
           std::string::npos;
  };
  EXPECT_FALSE(says("Watchpoints"));
  analysis.session.watch_trial = {profile::TrialVerdict::fires, 0, 4, "", ""};
  EXPECT_TRUE(says("Watchpoints fire (4 debug registers)."));
  analysis.session.watch_trial = {profile::TrialVerdict::partly, profile::trial_locked, 4, "why", ""};
  EXPECT_TRUE(says("Watchpoints fire in part (4 debug registers): not for all locked updates."));
  analysis.session.watch_trial.verdict = profile::TrialVerdict::never;
  EXPECT_TRUE(says("Watchpoints do not fire: nothing was watched."));
  analysis.session.watch_trial.verdict = profile::TrialVerdict::not_opened;
  EXPECT_TRUE(says("Watchpoints could not be opened: nothing was watched."));
  analysis.session.watch_trial.verdict = profile::TrialVerdict::untestable;
  EXPECT_TRUE(says("Watchpoints could not be tested: nothing was watched."));
}

TEST(TextReport, WhatWasNotDetectedHasALimitThatIsSaidOnce) {
  auto analysis = test::sample_analysis();
  const std::string limit = "Undetected communication costs at most 340 ms";
  const auto times_said = [&](View view) {
    const std::string text = render_text(analysis, view, nullptr, {});
    const std::size_t first = text.find(limit);
    return first == std::string::npos ? 0 : text.find(limit, first + 1) == std::string::npos ? 1 : 2;
  };
  EXPECT_EQ(times_said(View::summary), 0) << "not asked for";
  analysis.communication.undetected = attribution::undetected({attribution::EvidenceKind::probed, "", {}, 0.34, 0, 0});
  EXPECT_EQ(times_said(View::summary), 1);
  EXPECT_EQ(times_said(View::matrix), 1);
  analysis.communication.cells.clear();
  EXPECT_EQ(times_said(View::matrix), 1);
}

TEST(TextReport, ThreadsThatWereAloneCannotHaveCommunicated) {
  auto analysis = test::sample_analysis();
  analysis.communication.cells.clear();
  analysis.communication.undetected = attribution::undetected({attribution::EvidenceKind::none, "", {}, 0.0, 0, 0});
  const std::string text = render_text(analysis, View::matrix, nullptr, {});
  EXPECT_NE(text.find("so they could not communicate"), std::string::npos) << text;
  EXPECT_EQ(text.find("Not known"), std::string::npos) << text;
}

TEST(TextReport, DetectionsStandInWhereNoCostIsKnown) {
  auto analysis = test::sample_analysis();
  for (auto& cell : analysis.communication.cells) {
    cell.true_sharing.cost_s.reset();
    cell.false_sharing.cost_s.reset();
  }
  const std::string text = render_text(analysis, View::matrix, nullptr, {});
  EXPECT_NE(text.find("340 f"), std::string::npos);
  EXPECT_NE(text.find("detected communications"), std::string::npos);
}

TEST(TextReport, HandOversASecondAreSaidWhereAllAreCounted) {
  auto analysis = test::sample_analysis();
  analysis.duration_s = 2;
  for (attribution::Cell& cell : analysis.communication.cells) {
    cell.true_sharing = {};
    cell.false_sharing.seen = 100;
    cell.false_sharing.count = 1e6;
  }
  const std::string rate = count_text(0.5e6 * static_cast<double>(analysis.communication.cells.size()));
  const std::string text = render_text(analysis, View::matrix, nullptr, {});
  EXPECT_NE(text.find("In all about " + rate + " hand-overs a second."), std::string::npos) << text;
  analysis.communication.cells[0].false_sharing.count.reset();
  EXPECT_EQ(render_text(analysis, View::matrix, nullptr, {}).find("hand-overs a second"), std::string::npos);
}

TEST(TextReport, ObjectMapShowsWhoTouchesWhichByte) {
  const std::string text = render_text(test::sample_analysis(), View::objects, nullptr, {});
  EXPECT_NE(text.find("2 worker          ········ bbbbbbbb"), std::string::npos);
  EXPECT_NE(text.find("3 worker          ········ ········ rrrrrrrr"), std::string::npos);
  EXPECT_NE(text.find("+4096"), std::string::npos);
  EXPECT_NE(text.find("allocated at queue.cpp:12"), std::string::npos);
}

TEST(TextReport, OffsetsFarIntoABlockStandAboveTheirBytes) {
  auto analysis = test::sample_analysis();
  analysis.communication.objects[1].offsets = {{3, 1'234'560, 8, 0, 7}, {4, 1'234'560, 8, 9, 0}};
  for (const int width : {60, 80, 200}) {
    const auto lines = lines_of(render_text(analysis, View::objects, nullptr, {width, Charset::ascii, false}));
    const auto ruler = std::find_if(lines.begin(), lines.end(),
                                    [](const std::string& line) { return line.find("+1234560") != std::string::npos; });
    ASSERT_NE(ruler, lines.end()) << width;
    EXPECT_EQ(ruler->find("+1234560"), (ruler + 1)->find("www")) << *ruler << "\n" << *(ruler + 1);
  }
}

TEST(TextReport, WhatNothingCanBeGainedFromIsSaidToBeNone) {
  auto analysis = test::sample_analysis();
  attribution::ObjectRow& object = analysis.communication.objects[0];
  object.true_sharing = {};
  object.false_sharing.cost_s = 0.81;
  object.false_sharing.detections = 100;
  object.false_sharing.gain_s = 0;
  object.false_sharing.gain_ci95 = attribution::Interval{0, 0};
  object.true_sharing.gain_ci95 = attribution::Interval{0, 0};
  object.true_sharing.gain_s = 0;
  std::string text = render_text(analysis, View::objects, nullptr, {});
  EXPECT_NE(text.find("gain none  counters"), std::string::npos) << text;
  object.false_sharing.one_processor = true;
  text = render_text(analysis, View::objects, nullptr, {});
  EXPECT_NE(text.find("gain none, on one processor  counters"), std::string::npos) << text;
}

TEST(TextReport, LoopsWithoutLinesAreToldApartByTheirAddress) {
  auto analysis = test::sample_analysis();
  for (attribution::LoopRow& loop : analysis.loops) {
    loop.file.clear();
    loop.function = "a.out+0x1000";
    loop.header = 0x1000 + 0x10 * loop.id;
  }
  const std::string text = render_text(analysis, View::loops, nullptr, {});
  EXPECT_NE(text.find("a.out+0x1000  a.out+0x1010"), std::string::npos) << text;
  EXPECT_NE(text.find("a.out+0x1000  a.out+0x1020"), std::string::npos) << text;
}

TEST(TextReport, WhatRunsOnlyBecauseOfObservingIsToldApart) {
  auto analysis = test::sample_analysis();
  analysis.sampling.stand_ins_s = 0.12;
  const std::string text = render_text(analysis, View::loops, nullptr, {});
  EXPECT_NE(text.find("crosstalk's wrappers of malloc() and other functions took 120 ms."), std::string::npos) << text;
}

TEST(TextReport, SharesOfFewSamplesAreMarked) {
  auto analysis = test::sample_analysis();
  EXPECT_EQ(render_text(analysis, View::loops, nullptr, {}).find("~"), std::string::npos) << "not known of how many";
  analysis.loops[0].samples = 3;
  const std::string text = render_text(analysis, View::loops, nullptr, {});
  EXPECT_TRUE(std::regex_search(text, std::regex("\n +~[0-9.]+ %"))) << text;
  EXPECT_NE(text.find("~: rests on fewer than 20 samples"), std::string::npos) << text;
}

TEST(TextReport, ShowsWhatEnteredTheKernelAndWhoCalledIt) {
  auto analysis = test::sample_analysis();
  attribution::KernelRow row;
  row.name = "read";
  row.share = 0.4;
  row.self_s = 0.8;
  row.samples = 200;
  row.callers = {{"pump", "/src/a.cpp", 20, 1}};
  analysis.kernel = {row};
  const std::string text = render_text(analysis, View::loops, nullptr, {});
  EXPECT_TRUE(std::regex_search(text, std::regex("40.0 % .* 800 ms  read +pump a.cpp:20"))) << text;
}

TEST(TextReport, CpuTimeThatIsNotKnownIsNotZero) {
  auto analysis = test::sample_analysis();
  for (attribution::ThreadSummary& thread : analysis.threads) {
    thread.cpu_s.reset();
  }
  EXPECT_NE(render_text(analysis, View::summary, nullptr, {}).find("CPU time not known"), std::string::npos);
}

TEST(TextReport, LoopsAreIndentedUnderTheirParents) {
  const std::string text = render_text(test::sample_analysis(), View::loops, nullptr, {});
  EXPECT_LT(text.find("  worker(int)  main.cpp:18-30"), text.find("    bench::detail"));
}

TEST(TextReport, ACycleOfLoopParentsEnds) {
  auto analysis = test::sample_analysis();
  analysis.loops[0].parent = 2;
  EXPECT_FALSE(render_text(analysis, View::loops, nullptr, {}).empty());
}

TEST(TextReport, HostileNamesCanNotReachTheTerminal) {
  auto analysis = test::sample_analysis();
  analysis.session.command = "a\x1b[2J\nb";
  analysis.threads[1].name = "\x1b]0;x\x07";
  analysis.communication.objects[0].name = "x\ny";
  analysis.loops[0].function = "f\x1b[1m";
  analysis.warnings[0].message = "w\x1b[1m";
  for (const View view : all_views) {
    EXPECT_EQ(render_text(analysis, view, nullptr, {}).find('\x1b'), std::string::npos);
  }
}

TEST(TextReport, AnEmptyAnalysisIsDrawn) {
  for (const View view : all_views) {
    EXPECT_FALSE(render_text({}, view, nullptr, {}).empty());
  }
}

TEST(HeatLevel, StepsAtFixedShares) {
  EXPECT_EQ(heat_level(0, 1), 0);
  EXPECT_EQ(heat_level(0.02, 1), 1);
  EXPECT_EQ(heat_level(0.1, 1), 2);
  EXPECT_EQ(heat_level(0.25, 1), 3);
  EXPECT_EQ(heat_level(0.5, 1), 4);
  EXPECT_EQ(heat_level(1, 1), 5);
  EXPECT_EQ(heat_level(1, 0), 0);
}

}  // namespace
}  // namespace crosstalk::driver::text_report_test
