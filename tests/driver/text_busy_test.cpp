// SPDX-License-Identifier: Apache-2.0
// Busy times, accounts and their consequences in a text report.
#include <gtest/gtest.h>

#include <memory>

#include "attribution/busy/loop_figures.h"
#include "attribution/busy/wait_places.h"
#include "driver/text/report.h"
#include "sample_analysis.h"
#include "text_lines.h"

namespace crosstalk::driver::text_busy_test {
namespace {

using attribution::Analysis;
using attribution::LoopFigures;
using attribution::LoopRow;
using models::CycleClass;
using models::Unit;
using test::line_with;
using test::lines_of;

/// Returns the figures of a loop that memory limits, on a machine without an L3.
LoopFigures calibrated_figures() {
  LoopFigures figures;
  figures.busy[Unit::memory] = {2.61, 0.9, 0.6};
  figures.per_s[Unit::memory] = 1.25e10;
  figures.busy[Unit::l3].exists = false;
  figures.reasons[Unit::l2] = "no address of it was sampled";
  figures.busy[Unit::l1d] = {0.725, 0.25, 0.2};
  figures.per_s[Unit::l1d] = 2.5e10;
  figures.busy[Unit::fpu] = {0.029, 0.01, 0.01};
  figures.per_s[Unit::fpu] = 1.3e9;
  figures.bytes_to_flops = 9.6;
  figures.balance = 0.5;
  figures.busy_class = {models::BusyClass::in_memory, "Memory was busy for 90 % of the time."};
  figures.notes = {"At least as much comes from memory as this says."};
  figures.application.candidates = {{models::ApplicationClass::high_bf_direct, "Many bytes an operation."}};
  figures.advice = {{"Block the loop", "Memory has no more to give.", "It is busy.", "5.2.1"}};
  figures.waits.at(CycleClass::memory) = 2.175;
  figures.waits.at(CycleClass::fpu) = 0.58;
  figures.waits.at(CycleClass::unattributed) = 0.145;
  figures.packed = 1.0;
  figures.threads = 2;
  figures.imbalance = 0.25;
  return figures;
}

/// The sample's outermost loop has these figures, and one thread an account of its time.
Analysis analysis_with(const LoopFigures& figures) {
  Analysis analysis = test::sample_analysis();
  analysis.loops[0].figures = std::make_shared<const LoopFigures>(figures);
  models::CycleAccount waits;
  waits.at(CycleClass::barrier) = 0.5;
  waits.at(CycleClass::data) = 0.25;
  waits.at(CycleClass::unattributed) = 0.25;
  analysis.threads[1].waits = waits;
  return analysis;
}

std::string shown(const Analysis& analysis, int width = 100, View view = View::busy) {
  return render_text(analysis, view, nullptr, {width, Charset::ascii, false});
}

TEST(TextBusy, UnitsHaveBarsSharesAndRates) {
  const std::string text = shown(analysis_with(calibrated_figures()));
  const std::string bar_90(43, '#');
  EXPECT_EQ(line_with(text, "memory   "), "    memory                  " + bar_90 + "         90.0 %  12.5 GB/s")
      << text;
  const std::string l1d = line_with(text, "    L1D   ");
  EXPECT_NE(l1d.find("25.0 %  25.0 GB/s"), std::string::npos) << text;
  EXPECT_EQ(std::count(l1d.begin(), l1d.end(), '#'), 12) << l1d;
  EXPECT_NE(line_with(text, "floating-point units").find("1.0 %  1.30 Gflop/s"), std::string::npos) << text;
  EXPECT_NE(line_with(text, "    L2   ").find("not known: no address of it was sampled"), std::string::npos) << text;
  EXPECT_EQ(line_with(text, "    L3   "), "") << "the machine has none";
  EXPECT_NE(line_with(text, "Busy times and waits"), "");
  EXPECT_NE(line_with(text, "worker(int)").find("main.cpp:18-30"), std::string::npos) << text;
  EXPECT_NE(line_with(text, "worker(int)").find("58.0 %"), std::string::npos) << text;
}

TEST(TextBusy, AUnitThatIsBusierThanItsPeakHasAFullBar) {
  LoopFigures figures = calibrated_figures();
  figures.busy[Unit::memory].of_effective = 1.25;
  const std::string line = line_with(shown(analysis_with(figures)), "memory   ");
  EXPECT_EQ(std::count(line.begin(), line.end(), '#'), 48) << line;
  EXPECT_NE(line.find("125.0 %"), std::string::npos) << line;
}

TEST(TextBusy, WhereTheTimeWentIsABarOfLettersWithTheirWords) {
  const std::string text = shown(analysis_with(calibrated_figures()));
  const std::string line = line_with(text, "where the time went");
  EXPECT_EQ(line, "    where the time went     " + std::string(10, 'f') + std::string(36, 'm') + "..") << text;
  EXPECT_NE(line_with(text, "f functional units 20.0 %, m memory 75.0 %, . not attributed 5.0 %"), "") << text;
}

TEST(TextBusy, TheClassIsSaidWithItsEvidenceAndWhatToDo) {
  const std::string text = shown(analysis_with(calibrated_figures()));
  for (const char* const words : {"class: limited by memory. Memory was busy for 90 % of the time.",
                                  "note: At least as much comes from memory as this says.",
                                  "kind, perhaps: many bytes an operation, direct access (5). Many bytes an operation.",
                                  "> Block the loop. Memory has no more to give. It is busy."}) {
    EXPECT_NE(line_with(text, words), "") << words << "\n" << text;
  }
  LoopFigures undecided = calibrated_figures();
  undecided.busy_class = {std::nullopt, "The busy time of L2 is unknown."};
  EXPECT_NE(line_with(shown(analysis_with(undecided)), "class: not known. The busy time of L2 is unknown."), "");
}

TEST(TextBusy, ALoopAndTheOnlyOneInsideItAreOneEntry) {
  Analysis analysis = analysis_with(calibrated_figures());
  LoopRow inner = analysis.loops[0];
  inner.id = 4711;
  inner.parent = analysis.loops[0].id;
  inner.line_begin = 20;
  inner.line_end = 21;
  inner.cpu_s *= 0.98;
  inner.share *= 0.98;
  analysis.loops.push_back(inner);
  std::string text = shown(analysis);
  EXPECT_NE(line_with(text, "main.cpp:20-21"), "") << text;
  EXPECT_NE(line_with(text, "note: the loop around it (main.cpp:18-30) spends nearly all of its time in this one"), "")
      << text;
  analysis.loops.back().cpu_s *= 0.5;
  text = shown(analysis);
  EXPECT_NE(line_with(text, "main.cpp:18-30"), "") << text;
  EXPECT_EQ(line_with(text, "the loop around it"), "") << text;
}

TEST(TextBusy, PerformanceIsOfAThreadOfAllAndAltogether) {
  Analysis analysis = analysis_with(calibrated_figures());
  LoopRow& loop = analysis.loops[0];
  loop.rates.flops.per_s = 1.3e9;
  loop.rates.loads = {2e9, {}, ""};
  loop.rates.instructions.unknown = loop.rates.stores.unknown = "it calls functions";
  loop.rates.bytes.per_s = 2.5e10;
  const std::string text = shown(analysis);
  EXPECT_NE(line_with(text, "    performance: 1.45 s elapsed at least, 2.90 s of CPU time, 2.0 threads at once"), "")
      << text;
  EXPECT_EQ(line_with(text, "altogether"), "                            a thread         all  altogether") << text;
  EXPECT_EQ(line_with(text, "      flops "), "      flops                 1.30 G/s    2.60 G/s      3.77 G") << text;
  EXPECT_EQ(line_with(text, "      loads "), "      loads                 2.00 G/s    4.00 G/s      5.80 G") << text;
  EXPECT_NE(line_with(text, "memory, bytes").find("12.5 G/s    25.0 G/s      36."), std::string::npos) << text;
  EXPECT_NE(line_with(text, "memory, lines").find("195 M/s"), std::string::npos) << text;
  EXPECT_NE(line_with(text, "not known: instructions; stores (it calls functions); L2, lines (no address of it was"),
            "")
      << text;
  EXPECT_EQ(line_with(text, "L3, lines"), "") << "the machine has none";
  EXPECT_NE(line_with(text, "SIMD 100.0 %, bytes/flop 9.6 (machine 0.5)"), "") << text;
}

TEST(TextBusy, PerformanceNamesKindsOfOperationsAndHowThreadsShareTheTime) {
  LoopFigures figures = calibrated_figures();
  models::FlopMix mix;
  mix.add(models::Width::avx2, models::Precision::double_precision, models::Operation::fma, 7.5e8);
  mix.add(models::Width::scalar, models::Precision::single_precision, models::Operation::add, 2e8);
  mix.other = 0.5e8;
  figures.flops = mix;
  figures.access_bytes = 32;
  Analysis analysis = analysis_with(figures);
  LoopRow& loop = analysis.loops[0];
  loop.threads = {{1, 1, 1, 0}, {2, 2, 2, 0}, {3, 1, 1, 0}};
  std::string text = shown(analysis);
  EXPECT_NE(line_with(text, "flops by kind: AVX double multiply-adds 75.0 %, scalar single additions 20.0 %"), "")
      << text;
  EXPECT_NE(line_with(text, "bytes an access 32"), "") << text;
  EXPECT_LT(text.find("      2 worker"), text.find("      1 worker")) << "longest first";
  EXPECT_EQ(line_with(text, "      1 worker"), "      1 worker                1.00 s                  25.0 %") << text;
  loop.threads[0] = {1, 1.5, 1.5, 0.5};
  text = shown(analysis);
  EXPECT_EQ(line_with(text, "      1 worker"), "      1 worker                1.50 s      500 ms      25.0 %") << text;
  loop.threads.resize(1);
  EXPECT_EQ(line_with(shown(analysis), "of work"), "") << "of one thread there is nothing to share";
}

TEST(TextBusy, WithoutACalibrationTimeIsAccountedForAndTheRestIsAskedFor) {
  LoopFigures figures = calibrated_figures();
  figures.busy = {};
  figures.per_s = {};
  figures.busy_class = {};
  figures.application = {};
  figures.notes.clear();
  Analysis analysis = analysis_with(figures);
  analysis.warnings.push_back({"no_calibration", "How busy units were is not known: run crosstalk calibrate."});
  const std::string text = shown(analysis);
  EXPECT_NE(line_with(text, "  How busy units were is not known: run crosstalk calibrate."), "") << text;
  EXPECT_NE(line_with(text, "where the time went"), "");
  EXPECT_EQ(line_with(text, "class: "), "") << text;
  EXPECT_EQ(line_with(text, "    L1D   "), "") << "no bar of a unit: " << text;
  EXPECT_NE(line_with(text, "(the machine is not calibrated)"), "") << text;
}

TEST(TextBusy, ThreadsHaveABarOfTheirElapsedTime) {
  Analysis analysis = analysis_with(calibrated_figures());
  const std::string text = shown(analysis);
  EXPECT_NE(line_with(text, "Where threads' time went"), "") << text;
  EXPECT_EQ(line_with(text, "    1 worker   "), "    1 worker                " + std::string(12, 'd') +
                                                    std::string(24, 'B') + std::string(12, '.') + "    1.00 s")
      << text;
  EXPECT_NE(line_with(text, "B barriers 50.0 %"), "") << text;
  EXPECT_EQ(line_with(text, "    2 worker   "), "") << "of it nothing is known";
  analysis.threads[1].listed = false;
  EXPECT_EQ(line_with(shown(analysis), "    1 worker   "), "");
}

TEST(TextBusy, TheThreadsThatLivedLongestComeFirstAndTheRestIsCounted) {
  Analysis analysis = analysis_with(calibrated_figures());
  attribution::ThreadSummary brief = analysis.threads[1];
  brief.waits->at(CycleClass::barrier) = 0.1;
  analysis.threads.insert(analysis.threads.begin(), 40, brief);
  for (std::uint32_t i = 0; i < analysis.threads.size(); ++i) {
    analysis.threads[i].index = i;
  }
  const std::string text = shown(analysis);
  const std::size_t longest = text.find("    1.00 s", text.find("Where threads' time went"));
  EXPECT_LT(longest, text.find("600 ms", text.find("Where threads' time went"))) << text;
  EXPECT_NE(text.find(" more threads\n"), std::string::npos) << text;
}

TEST(TextBusy, OfAProgramWithoutHotLoopsThreadsTimeIsStillAccountedFor) {
  Analysis analysis = analysis_with(calibrated_figures());
  analysis.loops.clear();
  const std::string text = shown(analysis);
  EXPECT_NE(line_with(text, "Where threads' time went"), "") << text;
  EXPECT_NE(line_with(text, "No loop takes 3 % of the CPU time"), "") << text;
}

TEST(TextBusy, LoopsThatTakeLittleAreLeftOut) {
  Analysis analysis = analysis_with(calibrated_figures());
  analysis.loops[2].figures = analysis.loops[0].figures;
  EXPECT_NE(line_with(shown(analysis), "main.cpp:50"), "");
  analysis.loops[2].share = 0.02;
  EXPECT_EQ(line_with(shown(analysis), "main.cpp:50"), "");
}

TEST(TextBusy, PlacesOfWaitsAreListed) {
  Analysis analysis = analysis_with(calibrated_figures());
  attribution::WaitPlace place;
  place.kind = profile::WaitKind::mutex;
  place.function = "Queue::push(int)";
  place.file = "/src/queue.h";
  place.line = 88;
  place.waited_s = 0.3;
  place.count = 1200;
  analysis.wait_places = {place};
  const std::string line = line_with(shown(analysis), "Queue::push(int)");
  EXPECT_TRUE(line.starts_with("    mutex ")) << line;
  EXPECT_NE(line.find("queue.h:88"), std::string::npos) << line;
  EXPECT_TRUE(line.ends_with("300 ms    1.20 k waits")) << line;
}

TEST(TextBusy, SampledWaitsHaveLooksAndTheirObjects) {
  Analysis analysis = analysis_with(calibrated_figures());
  attribution::WaitPlace place;
  place.kind = profile::WaitKind::mutex;
  place.function = "Queue::push(int)";
  place.file = "/src/queue.h";
  place.line = 88;
  place.waited_s = 0.3;
  place.sampled = true;
  place.looks = 30;
  place.objects = {{"queue", "guard", "", attribution::ObjectKind::global, 0.3}};
  analysis.wait_places = {place};
  EXPECT_TRUE(line_with(shown(analysis), "Queue::push(int)").ends_with("300 ms        30 samples"));
  EXPECT_EQ(line_with(shown(analysis), "on queue.guard"), "      on queue.guard");
  EXPECT_NE(line_with(shown(analysis), "sampled from outside"), "");
  analysis.wait_places[0].objects.push_back({"other", "", "", attribution::ObjectKind::global, 0.1});
  EXPECT_NE(line_with(shown(analysis), "on queue.guard: 300 ms, other: 100 ms"), "");
  analysis.wait_places[0].for_end = true;
  EXPECT_TRUE(line_with(shown(analysis), "Queue::push(int)").starts_with("    join"));
  EXPECT_EQ(line_with(shown(analysis), "on queue.guard"), "");
}

TEST(TextBusy, FitsTheWidthInEveryCharsetWhateverIsKnown) {
  LoopFigures uncalibrated = calibrated_figures();
  uncalibrated.busy_class = {};
  for (const LoopFigures& figures : {calibrated_figures(), uncalibrated, LoopFigures()}) {
    for (const int width : {60, 72, 80, 100, 200}) {
      for (const Charset charset : {Charset::utf8, Charset::ascii}) {
        for (const View view : {View::busy, View::loops}) {
          const std::string text = render_text(analysis_with(figures), view, nullptr, {width, charset, false});
          for (const std::string& line : lines_of(text)) {
            EXPECT_LE(display_width(line), width) << line;
            EXPECT_TRUE(line.empty() || line.back() != ' ') << "'" << line << "'";
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace crosstalk::driver::text_busy_test
