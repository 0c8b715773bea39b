// SPDX-License-Identifier: Apache-2.0
#include "attribution/overview.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "attribution/advice.h"
#include "attribution/findings.h"
#include "attribution/model/sentences.h"
#include "attribution/samples/brief_threads.h"
#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::overview_test {
namespace {

bool has(const std::vector<Warning>& warnings, const std::string& code) {
  return std::any_of(warnings.begin(), warnings.end(), [&](const Warning& w) { return w.code == code; });
}

Cell cell(std::uint32_t producer, std::uint32_t consumer, double true_s, double false_s, std::uint64_t seen) {
  Cell c;
  c.producer = producer;
  c.consumer = consumer;
  c.true_sharing.cost_s = true_s;
  c.false_sharing.cost_s = false_s;
  c.false_sharing.seen = seen;
  c.false_sharing.detections = static_cast<double>(seen);
  return c;
}

TEST(ThreadSummaries, TimesAndShares) {
  auto threads = make_threads(3);
  threads[0].cpu_ns = 2'000'000'000;
  std::vector<profile::ProcessRow> processes(1);
  processes[0].pid = 42;
  std::vector<ThreadTotal> totals(3);
  totals[0] = {10, 0, 1e9, 0.25e9};
  totals[1] = {1, 0, 1e6, 0};
  const Matrix cells = {cell(0, 1, 0.1, 0.2, 1)};
  const auto summaries = thread_summaries(threads, processes, totals, &cells, 0);
  ASSERT_EQ(summaries.size(), 3U);
  EXPECT_EQ(summaries[0].pid, 42);
  EXPECT_NEAR(*summaries[0].cpu_s, 2, 1e-12);
  EXPECT_NEAR(summaries[0].kernel_share.value_or(-1), 0.25, 1e-12);
  EXPECT_NEAR(*summaries[1].cpu_s, 0.001, 1e-12);
  EXPECT_NEAR(*summaries[1].communication_s, 0.3, 1e-12);
  EXPECT_EQ(summaries[0].communication_s, 0);
  EXPECT_FALSE(summaries[2].communication_s);  // no samples: not known
  EXPECT_FALSE(thread_summaries(threads, processes, totals, nullptr, 0)[0].communication_s);
  EXPECT_FALSE(summaries[2].cpu_s);
}

TEST(ThreadSummaries, AThreadHasNoMoreTimeThanTheRecording) {
  auto threads = make_threads(2);
  threads[0].cpu_ns = 200'000'000;
  const std::vector<ThreadTotal> totals = {{10, 0, 0.37e9, 0}, {10, 0, 0.29e9, 0}};
  std::vector<profile::ProcessRow> processes(1);
  processes[0].observation = profile::Observation::outside;
  const auto summaries = thread_summaries(threads, processes, totals, nullptr, 0.3);
  EXPECT_NEAR(*summaries[0].cpu_s, 0.3, 1e-12);
  EXPECT_NEAR(*summaries[1].cpu_s, 0.29, 1e-12);
}

TEST(ThreadSummaries, ABriefThreadHasItsOwnTimeNotWhatItsSampleStandsFor) {
  auto threads = make_threads(2);
  for (profile::ThreadRow& thread : threads) {
    thread.end_ns = 5;
    thread.period_us = 4000;
  }
  threads[0].cpu_ns = 1'000'000;
  threads[1].cpu_ns = 1'000'000'000;
  const std::vector<ThreadTotal> totals = {{1, 0, 4e6, 0}, {250, 0, 1e9, 0}};
  const auto summaries = thread_summaries(threads, std::vector<profile::ProcessRow>(1), totals, nullptr, 0);
  EXPECT_TRUE(summaries[0].brief);
  EXPECT_NEAR(*summaries[0].cpu_s, 0.001, 1e-12);
  EXPECT_FALSE(summaries[1].brief);
}

TEST(BriefThreads, FewSamplesStandForTooLittleByChance) {
  constexpr std::size_t many = 1000;
  constexpr double part = 0.6;  // of the time of all that samples stand for
  auto threads = make_threads(many);
  for (profile::ThreadRow& thread : threads) {
    thread.cpu_ns = 1'000'000;
  }
  const auto told = [&](std::size_t samples) {
    std::vector<ThreadTotal> totals(many);
    for (std::size_t i = 0; i < samples; ++i) {
      totals[i] = {1, 0, part * 1e6 * static_cast<double>(many) / static_cast<double>(samples), 0};
    }
    return unsampled_in_words(threads, totals).value_or("");
  };
  EXPECT_NE(told(50).find("samples of others like them stand for them"), std::string::npos) << "0.6 +- 0.17";
  EXPECT_NE(told(500).find("no sample stands for them"), std::string::npos) << "0.6 +- 0.05";
}

TEST(BriefThreads, ThoseWithoutSamplesAreALineOfTheirOwn) {
  auto threads = make_threads(40);
  std::vector<ThreadTotal> totals(40);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    threads[i].cpu_ns = 1'000'000;
    totals[i] = i % 4 == 0 ? ThreadTotal{1, 0, 4e6, 0} : ThreadTotal{};
  }
  EXPECT_EQ(unsampled_in_words(threads, totals),
            "30 threads, 0.03 s of CPU time: too short to be sampled; samples of others like them stand for them");
  EXPECT_NEAR(uncovered_s(threads, totals), 0, 1e-12);
  const std::vector<std::string> made_at = {"spawn() at a.cpp:4", "main() at b.cpp:9", "other() at b.cpp:20"};
  const auto told = [&](std::size_t places) {
    return unsampled_in_words(threads, totals, std::span(made_at).first(places)).value_or("");
  };
  EXPECT_NE(told(1).find("to be sampled (threads are made in spawn() at a.cpp:4); samples"), std::string::npos);
  EXPECT_NE(told(2).find("made in spawn() at a.cpp:4 and in main() at b.cpp:9); "), std::string::npos);
  EXPECT_EQ(told(3).find("made in"), std::string::npos) << "too many to say";
  const std::vector<std::string> began_in = {"work()"};
  EXPECT_NE(unsampled_in_words(threads, totals, std::span(made_at).first(1), began_in)
                .value_or("")
                .find("sampled (they began in work(); threads are made in spawn() at a.cpp:4); samples"),
            std::string::npos);
  EXPECT_NE(unsampled_in_words(threads, totals, {}, began_in).value_or("").find("sampled (they began in work()); "),
            std::string::npos);
  totals.assign(40, {});
  totals[0] = {1, 0, 4e6, 0};
  EXPECT_EQ(unsampled_in_words(threads, totals),
            "39 threads, 0.039 s of CPU time: too short to be sampled; no sample stands for them; try --period 100us "
            "--budget 20");
  EXPECT_NEAR(uncovered_s(threads, totals), 0.036, 1e-12);
  EXPECT_FALSE(unsampled_in_words(std::span(threads).first(1), std::span(totals).first(1))) << "all were sampled";
}

TEST(BriefThreads, TheFirstThreadOfAProcessWasNotMadeByItsProgram) {
  auto threads = make_threads(2);
  std::vector<profile::ProcessRow> processes(1);
  processes[0].pid = 70;
  threads[0].tid = 70, threads[1].tid = 71;
  threads[0].cpu_ns = threads[1].cpu_ns = 1'000'000;
  threads[0].samples = 0, threads[1].samples = 3;
  EXPECT_FALSE(has_unsampled_made_thread(processes, threads));
  threads[1].samples = 0;
  EXPECT_TRUE(has_unsampled_made_thread(processes, threads));
}

TEST(SamplingSummary, OverheadIsAFractionOfCpuTime) {
  auto threads = make_threads(2);
  threads[0].cpu_ns = 1'000'000'000;
  threads[0].handlers_ns = 10'000'000;
  threads[1].cpu_ns = 1'000'000'000;
  threads[1].switches_ns = 10'000'000;
  threads[1].lost = 3;
  threads[0].clock = threads[1].clock = profile::ClockKind::perf;
  threads[0].period_us = 4000;
  threads[1].period_us = 8000;
  std::vector<ThreadTotal> totals(2, ThreadTotal{5, 0, 1e9, 0});
  const auto summary = sampling_summary({}, threads, totals, {10, 8, 9, 4, 6, 0.1});
  EXPECT_NEAR(*summary.overhead_fraction, 0.01, 1e-12);
  EXPECT_EQ(summary.lost, 3U);
  EXPECT_EQ(summary.armed, 4U);
  ASSERT_EQ(summary.events.size(), 1U);
  EXPECT_EQ(summary.events[0].name, "perf-task-clock");
  EXPECT_EQ(summary.events[0].period, 4'000'000U);
  EXPECT_EQ(summary.events[0].samples, 10U);
  EXPECT_FALSE(sampling_summary({}, {}, {}, {}).overhead_fraction);
}

TEST(Warnings, ThreadsThatWaitedForAProcessor) {
  constexpr std::uint64_t ms = 1'000'000;
  profile::Session session;
  session.complete = true;
  session.cpus = 2;
  SamplingSummary sampling;
  sampling.samples = 100;
  const auto warned = [&](const profile::ProcessorWaits& waits) {
    session.waits = waits;
    const auto warnings = warnings_of(session, {}, sampling, {}, {});
    return warnings.empty() ? std::string() : warnings.front().code + ": " + warnings.front().message;
  };
  EXPECT_EQ(warned({}), "");
  EXPECT_EQ(warned({4, 900 * ms, 100 * ms}), "");
  EXPECT_EQ(warned({4, 10 * ms, 40 * ms}), "") << "too short a time to matter";
  EXPECT_EQ(
      warned({4, 600 * ms, 400 * ms})
          .rfind("overloaded: threads waited for a processor 40.0 % of the time in which they could have run. ", 0),
      0U);
}

TEST(Warnings, ByWhatHappened) {
  profile::Session session;
  session.complete = true;
  session.config.budget = 0.03;
  SamplingSummary sampling;
  sampling.samples = 100;
  EXPECT_TRUE(warnings_of(session, {}, sampling, {}, {}).empty());
  session.complete = false;
  sampling.lost = 2;
  sampling.overhead_fraction = 0.05;
  sampling.unknown_frames = 0.5;
  Communication communication;
  communication.cells.push_back(cell(0, 1, 0.1, 0, 1));
  Defects defects;
  defects.trap_gaps = 1;
  defects.ignored_traps = 1;
  defects.malformed_samples = 1;
  defects.unwatched_share = 0.5;
  defects.missing_symbols.push_back({"/bin/app", "stripped; install its debug package"});
  const std::vector<profile::MessageRow> messages = {{"no_perf", "perf is forbidden", 3}};
  const auto warnings = warnings_of(session, messages, sampling, communication, defects);
  EXPECT_EQ(warnings[0].message, "perf is forbidden (3 times)");
  for (const char* code :
       {"no_perf", "incomplete_profile", "lost_samples", "over_budget", "no_counts_without_pmu", "malformed_samples",
        "lost_traps", "ignored_traps", "unwatched_samples", "unknown_frames", "missing_symbols"}) {
    EXPECT_TRUE(has(warnings, code)) << code;
  }
  EXPECT_FALSE(has(warnings, "no_samples"));
}

TEST(Warnings, FilesOfAnotherMachineAreOneLine) {
  profile::Session session;
  session.complete = true;
  SamplingSummary sampling;
  sampling.samples = 100;
  Defects defects;
  defects.missing_symbols.push_back({"/bin/app", "stripped; install its debug package", false});
  for (const char* path : {"/lib/a.so", "/lib/b.so", "/lib/c.so"}) {
    defects.missing_symbols.push_back({path, "no such file", true});
  }
  EXPECT_EQ(warnings_of(session, {}, sampling, {}, defects).size(), 4U) << "few: each with its remedy";
  for (const char* path : {"/lib/d.so", "/lib/e.so"}) {
    defects.missing_symbols.push_back({path, "no such file", true});
  }
  const auto warnings = warnings_of(session, {}, sampling, {}, defects);
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_EQ(warnings[0].message, "/bin/app: stripped; install its debug package");
  EXPECT_EQ(warnings[1].code, "missing_symbols");
  EXPECT_NE(warnings[1].message.find("5 program files are missing here"), std::string::npos) << warnings[1].message;
  EXPECT_NE(warnings[1].message.find("(/lib/a.so, /lib/b.so, /lib/c.so and 2 more)"), std::string::npos);
}

TEST(Sampling, EventsOfAProfileHaveTheirNames) {
  profile::Session session;
  session.source = profile::imported_source;
  const std::vector<profile::EventRow> events = {
      {profile::EventId{1}, "cpu/mem-loads,ldlat=30/P", profile::SourceKind::pebs, profile::WeightUnit::accesses, 1000,
       30, true},
      {profile::EventId{2}, "cpu/mem-stores/P", profile::SourceKind::pebs, profile::WeightUnit::accesses, 0, 0, true}};
  SampleCounts counts;
  counts.samples = 7;
  counts.measured[{profile::EventId{1}, profile::SourceKind::pebs, profile::WeightUnit::accesses}] = 7;
  counts.events = events;
  const SamplingSummary summary = sampling_summary(session, {}, {}, counts);
  ASSERT_EQ(summary.events.size(), 2U);
  EXPECT_EQ(summary.events[0].name, "cpu/mem-loads,ldlat=30/P");
  EXPECT_EQ(summary.events[0].samples, 7U);
  EXPECT_EQ(summary.events[0].least_latency_cycles, 30U);
  EXPECT_EQ(summary.events[0].source, "pebs");
  EXPECT_EQ(summary.events[1].samples, 0U) << "recorded, and nothing was seen of it";
  EXPECT_FALSE(summary.settings_unknown.empty());
  EXPECT_FALSE(summary.overhead_fraction);
}

TEST(Warnings, BlocksLeftOutAreOneLine) {
  profile::Session session;
  session.complete = true;
  SamplingSummary sampling;
  sampling.samples = 100;
  const std::vector<profile::MessageRow> messages = {{"small_blocks_unnamed", "heap blocks below 64 bytes", 1},
                                                     {"small_blocks_unnamed", "heap blocks below 1024 bytes", 1},
                                                     {"no_perf", "perf is forbidden", 1},
                                                     {"small_blocks_unnamed", "heap blocks below 128 bytes", 1}};
  const auto warnings = warnings_of(session, messages, sampling, {}, {});
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_EQ(warnings[0].message, "heap blocks below 1024 bytes");
  EXPECT_EQ(warnings[1].code, "no_perf");
}

TEST(Warnings, RecordsThatWereLostAreSaidOnce) {
  profile::Session session;
  session.complete = true;
  SamplingSummary sampling;
  sampling.samples = 100;
  const std::vector<profile::MessageRow> messages = {{"records_lost", "4 records were lost to full rings", 4}};
  EXPECT_EQ(warnings_of(session, messages, sampling, {}, {}).size(), 1U) << "of no thread that is known";
  sampling.lost = 4;
  const auto warnings = warnings_of(session, messages, sampling, {}, {});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].code, "lost_samples");
}

TEST(Warnings, TheBudgetOfAProgramWithoutASampleIsNotMeant) {
  profile::Session session;
  session.complete = true;
  session.config.budget = 0.03;
  SamplingSummary sampling;
  sampling.overhead_fraction = 0.4;  // the start of the library
  EXPECT_TRUE(warnings_of(session, {}, sampling, {}, {}).empty());
  sampling.samples = 1;
  EXPECT_EQ(warnings_of(session, {}, sampling, {}, {}).size(), 1U);
}

TEST(Warnings, WhatAllocationTakesHasARemedyWhileAllBlocksAreListed) {
  profile::Session session;
  session.complete = true;
  session.config.budget = 0.03;
  SamplingSummary sampling;
  sampling.samples = 100;
  sampling.overhead_fraction = 0.1;
  sampling.handlers_s = 0.01;
  sampling.stand_ins_s = 0.1;
  EXPECT_NE(warnings_of(session, {}, sampling, {}, {})[0].message.find("--heap-threshold 4096"), std::string::npos);
  const std::vector<profile::MessageRow> messages = {{"small_blocks_unnamed", "heap blocks below 64 bytes", 1}};
  const auto warnings = warnings_of(session, messages, sampling, {}, {});
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_EQ(warnings[1].code, "over_budget");
  EXPECT_EQ(warnings[1].message.find("--heap-threshold"), std::string::npos);
  EXPECT_NE(warnings[1].message.find("malloc()"), std::string::npos);
  session.config.heap_threshold = 4096;
  const std::string left_out_by_wish = warnings_of(session, {}, sampling, {}, {})[0].message;
  EXPECT_EQ(left_out_by_wish.find("--heap-threshold"), std::string::npos) << left_out_by_wish;
}

TEST(Warnings, StandInsOfLocksAreNamedWhereWaitsWereMeasured) {
  profile::Session session;
  session.complete = true;
  session.config.budget = 0.03;
  session.config.measure_waits = 1;
  SamplingSummary sampling;
  sampling.samples = 100;
  sampling.overhead_fraction = 0.1;
  sampling.stand_ins_s = 0.1;
  const std::string message = warnings_of(session, {}, sampling, {}, {})[0].message;
  EXPECT_NE(message.find("probably those of locks and conditions; record without --waits"), std::string::npos)
      << message;
  EXPECT_EQ(message.find("heap"), std::string::npos) << message;
}

Analysis analysis_of_two_threads() {
  Analysis a;
  for (std::uint32_t i = 0; i < 2; ++i) {
    ThreadSummary thread;
    thread.index = i;
    thread.cpu_s = 1;
    thread.samples = 250;
    a.threads.push_back(thread);
  }
  a.cpu_s = 2;
  a.sampling.samples = 500;
  a.sampling.armed = 60;
  LoopRow loop;
  loop.function = "worker";
  loop.file = "/src/a.cpp";
  loop.line_begin = 29;
  loop.line_end = 31;
  loop.share = 0.62;
  a.loops.push_back(loop);
  return a;
}

TEST(Findings, FalseSharingOfAnArray) {
  Analysis a = analysis_of_two_threads();
  ObjectRow object;
  object.name = "counters";
  object.field = "[0]";
  object.kind = ObjectKind::global;
  object.size = 128;
  object.cells = {cell(0, 1, 0.03, 0.38, 40), cell(1, 0, 0.03, 0.38, 40)};
  object.cost_s = 0.82;
  object.sharing.kind = SharingKind::false_sharing;
  object.false_sharing.cost_s = 0.76;
  object.false_sharing.gain_s = 0.5;
  object.false_sharing.gain_ci95 = Interval{0.3, 0.7};
  a.communication.objects.push_back(object);
  LinePair pair;
  pair.object = "counters";
  pair.producer_function = pair.consumer_function = "worker";
  pair.producer_file = pair.consumer_file = "/src/a.cpp";
  pair.producer_line = pair.consumer_line = 30;
  a.communication.line_pairs.push_back(pair);
  const auto findings = findings_of(a);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].sentence,
            "Threads 0 and 1 exchange cache lines of `counters[0]` (in a global of 128 bytes): 93 % false "
            "sharing. This costs about 41 % of their time, in worker() at a.cpp:30. Give each thread's part its own "
            "64-byte line. The change would save 15 to 35 % of their time.");
  EXPECT_EQ(findings[0].kind, "false_sharing");
  EXPECT_EQ(findings[0].consumer, "a.cpp:30");
  EXPECT_EQ(findings[0].gain_s, 0.5);
  a.communication.objects[0].true_sharing.cost_ci95 = Interval{0, 0};
  a.communication.objects[0].false_sharing.cost_ci95 = Interval{0.4, 1.4};
  EXPECT_NE(findings_of(a)[0].sentence.find("costs about 41 % (20 to 70 %) of their time"), std::string::npos)
      << findings_of(a)[0].sentence;
  EXPECT_EQ(findings[1].sentence, "The hottest loop, in worker() at a.cpp:29-31, takes 62 % of the CPU time.");
}

/// Returns the first finding of an analysis whose hottest loop and function have these shares of the CPU time.
std::string hottest_of(double loop, const std::string& name, double function, double without_name) {
  Analysis a = analysis_of_two_threads();
  a.loops.resize(1);
  a.loops[0].share = loop;
  a.functions = {{"[unknown]", "", "", 0, 1, without_name}, {name, "", "", 0, 1, function}};
  return findings_of(a).front().sentence;
}

TEST(Findings, WhatIsHottestHasAPartWorthTelling) {
  EXPECT_EQ(hottest_of(0.62, "f", 0.62, 0),
            "The hottest loop, in worker() at a.cpp:29-31, takes 62 % of the CPU time.");
  EXPECT_EQ(hottest_of(0.04, "interpret", 0.5, 0), "The hottest function, interpret(), takes 50 % of the CPU time.");
  EXPECT_EQ(hottest_of(0.004, "_dl_fini", 0.004, 0.99),
            "99 % of the CPU time is in code that lies in no file and has no names: the warnings say why.");
  EXPECT_EQ(hottest_of(0.004, "f", 0.004, 0.2).find("hottest"), std::string::npos);
}

TEST(Findings, WhatObservingCostsIsNotWhereTheProgramIsHot) {
  Analysis a = analysis_of_two_threads();
  a.loops[0].share = 0.1;
  a.loops.insert(a.loops.begin(), a.loops[0]);
  a.loops[0].module = "/usr/lib/libcrosstalk.so";
  a.loops[0].share = 0.2;
  EXPECT_EQ(findings_of(a).front().sentence,
            "The hottest loop, in worker() at a.cpp:29-31, takes 10 % of the CPU time.");
}

std::string padding_of(std::vector<OffsetRow> offsets) {
  Analysis a = analysis_of_two_threads();
  ObjectRow object;
  object.name = "cache";
  object.kind = ObjectKind::global;
  object.size = 24;
  object.cells = {cell(0, 1, 0, 0.6, 40)};
  object.cost_s = 0.6;
  object.sharing.kind = SharingKind::false_sharing;
  object.offsets = std::move(offsets);
  a.communication.objects.push_back(object);
  const auto findings = findings_of(a);
  return findings.empty() ? "" : findings[0].sentence;
}

TEST(Findings, FieldsToBePutApartAreNamed) {
  const OffsetRow stored{0, 16, 8, 3, 9, "updates", "long"};
  const OffsetRow read{1, 8, 8, 20, 0, "table", "long*"};
  EXPECT_NE(
      padding_of({stored, read})
          .find("Threads store to `updates` while others read `table` on the same line. Give `updates` a line of its "
                "own (alignas(64))."),
      std::string::npos);
  const OffsetRow own{0, 8, 8, 20, 0, "table", "long*"};
  EXPECT_NE(padding_of({stored, own}).find("Give each thread's part its own 64-byte line."), std::string::npos)
      << "who stores reads it himself";
  const OffsetRow also_stored{1, 8, 8, 20, 1, "table", "long*"};
  EXPECT_NE(padding_of({stored, also_stored}).find("Give `table` and `updates` lines of their own"), std::string::npos);
  const OffsetRow first{0, 0, 8, 3, 9, "[0]", "long"};
  const OffsetRow second{1, 8, 8, 3, 9, "[1]", "long"};
  EXPECT_NE(padding_of({first, second}).find("Give `cache[0]` and `cache[1]` lines of their own"), std::string::npos);
  const OffsetRow nameless{1, 0, 8, 20, 0, "", ""};
  EXPECT_NE(padding_of({stored, read, nameless}).find("Give each thread's part its own"), std::string::npos);
}

ObjectRow exchanged_object(const char* name, double cost_s, std::optional<double> gain_s, Interval gain) {
  ObjectRow object;
  object.name = name;
  object.cells = {cell(0, 1, cost_s, 0, 30)};
  object.cost_s = cost_s;
  object.true_sharing.cost_s = cost_s;
  object.true_sharing.gain_s = gain_s;
  object.true_sharing.gain_ci95 = gain;
  object.false_sharing.gain_s = 0;
  object.false_sharing.gain_ci95 = Interval{0, 0};
  return object;
}

TEST(Findings, PaddingThatIsThereIsNotAdvisedAgain) {
  const OffsetRow head{0, 0, 8, 3, 9, "head", "long"};
  const OffsetRow tail{1, 64, 8, 3, 9, "tail", "long"};
  const OffsetRow others_tail{0, 64, 8, 20, 0, "tail", "long"};
  EXPECT_EQ(padding_of({head, tail, others_tail}).find("Give"), std::string::npos)
      << padding_of({head, tail, others_tail});
  const OffsetRow put{0, 128, 8, 0, 9, "items[0]", "long"};
  const OffsetRow taken{1, 136, 8, 3, 0, "items[1]", "long"};
  EXPECT_NE(padding_of({head, tail, others_tail, put, taken}).find("threads use elements of `items` at the same time."),
            std::string::npos);
  ObjectRow queue;
  queue.sharing.kind = SharingKind::queue;
  queue.offsets = {head, tail, others_tail};
  EXPECT_EQ(advice_for(queue, {}).find("64-byte line"), std::string::npos) << advice_for(queue, {});
  queue.offsets[1].offset = queue.offsets[2].offset = 56;
  EXPECT_NE(advice_for(queue, {}).find("Give each side its own 64-byte line."), std::string::npos);
  queue.offsets[1].offset = queue.offsets[2].offset = 64;
  queue.blocks = 2;
  EXPECT_NE(advice_for(queue, {}).find("Give each side its own 64-byte line."), std::string::npos)
      << "blocks may lie side by side";
}

TEST(Findings, TheHeapOfAnInterpreterCanNotBePadded) {
  Analysis a = analysis_of_two_threads();
  ObjectRow object;
  object.name = "mapping of 1 MiB";
  object.kind = ObjectKind::heap;
  object.cells = {cell(0, 1, 0, 0.6, 40)};
  object.cost_s = 0.6;
  object.sharing.kind = SharingKind::false_sharing;
  object.false_sharing.cost_s = 0.6;
  object.false_sharing.gain_s = 0.3;
  object.false_sharing.gain_ci95 = Interval{0.2, 0.4};
  object.allocation_path = {{"_PyObject_ArenaMmap", {}}, {"new_arena", {}}, {"_PyObject_Malloc", {}}};
  a.communication.objects.push_back(object);
  const std::string sentence = findings_of(a)[0].sentence;
  EXPECT_NE(sentence.find("allocator of CPython"), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find("64"), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find("saves"), std::string::npos) << sentence;
  const auto nameless = [&](std::uint64_t bytes, const char* function) {
    a.communication.objects[0].size = bytes;
    a.communication.objects[0].allocation_path = {{function, {}}};
    return findings_of(a)[0].sentence.find("allocator of CPython") != std::string::npos;
  };
  EXPECT_TRUE(nameless(1U << 20U, "python3.11+0x62d080"));
  EXPECT_TRUE(nameless(256U << 10U, "libpython3.9.so.1.0+0x62d080"));
  EXPECT_FALSE(nameless(4096, "python3.11+0x62d080"));
  EXPECT_FALSE(nameless(1U << 20U, "server+0x62d080"));
  a.communication.objects[0].allocation_path = {{"new_arena", {}}, {"main", {}}};
  EXPECT_NE(findings_of(a)[0].sentence.find("64-byte line"), std::string::npos) << "a program's own function";
}

TEST(Findings, PairsHaveTheGainOfTheirObjectsAdvice) {
  Communication c;
  c.objects.resize(1);
  c.objects[0].name = "counters";
  c.objects[0].sharing.kind = SharingKind::false_sharing;
  LinePair pair;
  pair.object = "counters";
  pair.true_sharing.cost_s = pair.true_sharing.gain_s = 2;
  pair.false_sharing.cost_s = pair.false_sharing.gain_s = 1;
  EXPECT_EQ(advised_gain(c, pair).gain_s, 1) << "padding saves nothing of true sharing";
  c.objects[0].sharing.kind = SharingKind::lock;
  EXPECT_EQ(advised_gain(c, pair).gain_s, 3);
}

TEST(Findings, ALimitOfAGainIsThatOfTheTables) {
  Analysis a = analysis_of_two_threads();
  ObjectRow object = exchanged_object("shared", 0.8, std::nullopt, {0, 1.6});
  object.true_sharing.cost_ci95 = Interval{0.4, 1.6};
  object.false_sharing.cost_ci95 = Interval{0, 0};
  a.communication.objects = {object};
  EXPECT_NE(findings_of(a)[0].sentence.find("up to 40 % of their time"), std::string::npos)
      << findings_of(a)[0].sentence;
  object.cost_s = *object.true_sharing.cost_s = 1.98;
  object.true_sharing.gain_ci95->high = 2;
  a.communication.objects = {object};
  const std::string all = findings_of(a)[0].sentence;
  EXPECT_EQ(all.find("on top"), std::string::npos) << all;
}

Analysis analysis_of_waits() {
  Analysis a = analysis_of_two_threads();
  for (ThreadSummary& thread : a.threads) {
    thread.waits.emplace().at(models::CycleClass::unattributed) = 2;
  }
  a.duration_s = 2;
  WaitPlace place;
  place.kind = profile::WaitKind::mutex;
  place.function = "take()";
  place.file = "/src/a.cpp";
  place.line = 14;
  place.waited_s = 1.2;
  place.threads = {{0, 0.6, 10}, {1, 0.6, 10}};
  WaitPlace other = place;
  other.function = "put()";
  other.line = 20;
  other.waited_s = 0.3;
  a.wait_places = {place, other};
  return a;
}

TEST(Findings, TheLargestWaitComesFirst) {
  Analysis a = analysis_of_waits();
  const Finding first = findings_of(a)[0];
  EXPECT_EQ(first.kind, "wait");
  EXPECT_EQ(first.consumer, "a.cpp:14");
  EXPECT_EQ(first.sentence,
            "Threads 0 and 1 wait for the mutex in take() at a.cpp:14: 1.2 s, 30 % of their elapsed time, from call to "
            "return. Take the lock less often, hold it for less time, or divide the data that it protects among "
            "several locks.");
  a.wait_places[0].kind = profile::WaitKind::condition;
  EXPECT_NE(findings_of(a)[0].kind, "wait") << "waiting for work";
  a.wait_places[1].kind = profile::WaitKind::condition;
  for (const Finding& finding : findings_of(a)) {
    EXPECT_NE(finding.kind, "wait");
  }
}

TEST(Findings, SampledWaitsAreForTheObjectOfTheirFutex) {
  Analysis a = analysis_of_waits();
  for (WaitPlace& place : a.wait_places) {
    place.sampled = true;
    place.objects = {{"queue", "guard", "", ObjectKind::global, place.waited_s}};
    place.waited_ci95 = {place.waited_s - 0.12, place.waited_s + 0.12};
  }
  const Finding finding = findings_of(a)[0];
  EXPECT_EQ(finding.object, "queue");
  EXPECT_EQ(finding.sentence,
            "Threads 0 and 1 wait for the mutex `queue.guard` in take() at a.cpp:14 and put() at a.cpp:20: 1.5 s, "
            "about 38 % (33 to 42 %) of their elapsed time, asleep (sampled from outside). Take the lock less often, "
            "hold it for less time, or divide "
            "the "
            "data that it protects among several locks.");
  a.wait_places[1].objects[0].field = "other";
  EXPECT_EQ(findings_of(a)[0].sentence.find("put()"), std::string::npos) << "another lock";
  a.wait_places[0].objects[0].kind = ObjectKind::unknown;
  EXPECT_EQ(findings_of(a)[0].object, "") << "an address is no name";
}

TEST(Findings, OneAddressIsOneLock) {
  Analysis a = analysis_of_waits();
  for (WaitPlace& place : a.wait_places) {
    place.sampled = true;
    place.objects = {{"memory at 0x1230", "", "", ObjectKind::unknown, place.waited_s}};
    place.waited_ci95 = {place.waited_s, place.waited_s};
  }
  EXPECT_TRUE(findings_of(a)[0].sentence.starts_with(
      "Threads 0 and 1 wait for the mutex in take() at a.cpp:14 and put() at a.cpp:20: 1.5 s, 38 % of their elapsed"))
      << findings_of(a)[0].sentence;
  a.wait_places[1].objects[0].name = "memory at 0x1238";
  EXPECT_EQ(findings_of(a)[0].sentence.find("put()"), std::string::npos) << "another lock";
}

TEST(Findings, ALockThatIsKnownHasAllOfItsPlaces) {
  Analysis a = analysis_of_waits();
  ObjectRow lock;
  lock.name = "guard";
  lock.kind = ObjectKind::global;
  lock.sharing.kind = SharingKind::lock;
  lock.cells = {cell(0, 1, 0.1, 0, 40)};
  lock.cost_s = 0.1;
  a.communication.objects.push_back(lock);
  LinePair pair;
  pair.object = "guard";
  pair.producer_file = pair.consumer_file = "/src/a.cpp";
  pair.producer_line = 20;
  pair.consumer_line = 14;
  pair.consumer_through = "___pthread_mutex_lock";
  a.communication.line_pairs.push_back(pair);
  pair.consumer_line = 20;
  a.communication.line_pairs.push_back(pair);
  pair.object = "beside";  // what another stores beside the lock
  pair.producer_line = 14;
  pair.consumer_line = 30;
  a.communication.line_pairs.push_back(pair);
  a.communication.objects[0].sharing.kind = SharingKind::false_sharing;
  const Finding first = findings_of(a)[0];
  EXPECT_EQ(first.object, "guard");
  EXPECT_NE(first.sentence.find("wait for the mutex `guard` in take() at a.cpp:14 and put() at a.cpp:20: 1.5 s, 38 %"),
            std::string::npos)
      << first.sentence;
}

/// Waits for a mutex in take() and put(), which a library's function takes; the object that it accesses is `row`.
Analysis analysis_of_waits_for(const ObjectRow& row) {
  Analysis a = analysis_of_waits();
  a.communication.objects = {row};
  LinePair pair;
  pair.object = row.name;
  pair.producer_file = pair.consumer_file = "/src/a.cpp";
  pair.producer_line = 20;
  pair.consumer_line = 14;
  pair.producer_through = pair.consumer_through = "___pthread_mutex_lock";
  a.communication.line_pairs = {pair};
  return a;
}

TEST(Findings, AWaitForAMutexNamesNoConditionVariable) {
  ObjectRow pool = exchanged_object("pool", 0.1, 0.1, {0.1, 0.1});
  pool.field = "cv_";
  pool.sharing.kind = SharingKind::condition;
  pool.sync_fields = {{"cv_", SharingKind::condition, 0.08}, {"mutex_", SharingKind::lock, 0.02}};
  const std::string sentence = findings_of(analysis_of_waits_for(pool))[0].sentence;
  EXPECT_NE(sentence.find("for the mutex `pool.mutex_` in"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("take() at a.cpp:14 and put() at a.cpp:20: 1.5 s"), std::string::npos)
      << "one finding of one mutex: " << sentence;
  pool.sync_fields.clear();
  const Finding nameless = findings_of(analysis_of_waits_for(pool))[0];
  EXPECT_EQ(nameless.object, "");
  EXPECT_NE(nameless.sentence.find("for the mutex in"), std::string::npos) << nameless.sentence;
  pool.sync_fields = {{"in", SharingKind::lock, 0.08}, {"out", SharingKind::lock, 0.02}};
  const std::string several = findings_of(analysis_of_waits_for(pool))[0].sentence;
  EXPECT_NE(several.find("for a mutex of `pool` in"), std::string::npos) << several;
}

TEST(Findings, OneThreadWaitsForAPartOfItsTime) {
  Analysis a = analysis_of_waits();
  a.wait_places.pop_back();
  a.wait_places[0].threads.pop_back();
  const std::string sentence = findings_of(a)[0].sentence;
  EXPECT_EQ(sentence.rfind("Thread 0 waits for the mutex in take() at a.cpp:14: 1.2 s, 60 % of its elapsed time", 0),
            0U)
      << sentence;
}

TEST(Findings, FewSightingsAreSaidToBeFew) {
  Analysis a = analysis_of_two_threads();
  a.loops.clear();
  ObjectRow object;
  object.name = "flag";
  object.kind = ObjectKind::global;
  object.size = 4;
  object.cells = {cell(0, 1, 0.01, 0, 3)};
  object.cost_s = 0.01;
  a.communication.objects.push_back(object);
  const std::string sentence = findings_of(a)[0].sentence;
  EXPECT_NE(sentence.find("Thread 0 passes the cache line of `flag` (global, 4 bytes) to thread 1: "),
            std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("a hint only: it rests on 3 detections"), std::string::npos) << sentence;
  EXPECT_EQ(findings_of(a)[0].kind, "hint");
  EXPECT_EQ(sentence.find('%'), std::string::npos) << sentence;
}

TEST(Findings, WhatGainsMostComesFirst) {
  Analysis a = analysis_of_two_threads();
  a.communication.objects = {exchanged_object("waited_for", 0.9, 0.0, {0, 0}),
                             exchanged_object("not_known", 0.5, std::nullopt, {0, 0.5}),
                             exchanged_object("counted", 0.4, 0.3, {0.2, 0.35})};
  a.communication.objects[0].sharing.kind = SharingKind::spin;
  a.communication.objects[2].sharing.kind = SharingKind::shared_counter;
  a.loops.clear();
  const auto findings = findings_of(a);
  ASSERT_GE(findings.size(), 3U);
  EXPECT_EQ(findings[0].object, "counted");
  EXPECT_EQ(findings[0].kind, "shared_counter");
  EXPECT_NE(findings[0].sentence.find("Transfers of the line take 10 to 18 % of their time. The operations themselves "
                                      "come on top."),
            std::string::npos)
      << findings[0].sentence;
  EXPECT_EQ(findings[0].sentence.find("would save 1"), std::string::npos) << "no limit of what the advice saves";
  EXPECT_EQ(findings[1].object, "not_known");
  EXPECT_NE(findings[1].sentence.find("take up to 25 % of their time. The range is wide"), std::string::npos)
      << findings[1].sentence;
  EXPECT_NE(findings[1].sentence.find("The operations themselves come on top."), std::string::npos)
      << findings[1].sentence;
  EXPECT_EQ(findings[2].object, "waited_for");
  EXPECT_NE(findings[2].sentence.find("Transfers of the line take next to none of their time. The waiting itself comes "
                                      "on top."),
            std::string::npos)
      << findings[2].sentence;
}

TEST(Findings, FieldsStandNextToTheirTypes) {
  ObjectRow object;
  object.name = "Ring allocated at spsc.cpp:30 in main";
  object.place = "allocated at spsc.cpp:30 in main";
  EXPECT_EQ(object_in_words(object), object.name);
  object.field = "head";
  EXPECT_EQ(object_in_words(object), "Ring.head allocated at spsc.cpp:30 in main");
  object.name = "Line[64] #2 of 40 allocated at chain.cpp:6 in main";
  object.place = "#2 of 40 allocated at chain.cpp:6 in main";
  object.field = "[3].hits";
  EXPECT_EQ(object_in_words(object), "Line[3].hits #2 of 40 allocated at chain.cpp:6 in main");
  object.name = "counters";
  object.place = "";
  EXPECT_EQ(object_in_words(object), "counters[3].hits");
}

/// A condition variable and a lock that threads 0 and 1 exchange.
Analysis analysis_of_waiting(std::uint32_t line_of_lock, const char* function_of_lock) {
  Analysis a = analysis_of_two_threads();
  a.communication.objects = {exchanged_object("mutex", 0.5, 0.2, {0.1, 0.3}),
                             exchanged_object("ready", 0.3, 0.1, {0.05, 0.2})};
  a.communication.objects[0].sharing.kind = SharingKind::lock;
  a.communication.objects[1].sharing.kind = SharingKind::condition;
  const auto pair = [&](const char* object, std::uint32_t line, const char* function) {
    LinePair row;
    row.object = object;
    row.producer_file = row.consumer_file = "/src/a.cpp";
    row.producer_line = row.consumer_line = line;
    row.producer_function = row.consumer_function = function;
    a.communication.line_pairs.push_back(row);
  };
  pair("mutex", line_of_lock, function_of_lock);
  pair("ready", 12, "take");
  return a;
}

TEST(Findings, AConditionVariableAndItsLockAreOne) {
  for (const auto& [line, function] :
       {std::pair{12U, "other"}, std::pair{10U, "take"}, std::pair{80U, "__pthread_mutex_cond_lock"}}) {
    const auto findings = findings_of(analysis_of_waiting(line, function));
    ASSERT_EQ(findings.size(), 2U) << "and the hottest loop";
    EXPECT_EQ(findings[0].kind, "condition");
    EXPECT_EQ(findings[0].object, "ready");
    EXPECT_NEAR(findings[0].cost_s, 0.8, 1e-9);
    EXPECT_NEAR(findings[0].gain_s.value_or(0), 0.3, 1e-9);
    EXPECT_NE(findings[0].sentence.find(
                  "cache lines of the condition variable `ready` and of its lock `mutex` to thread 1: a "
                  "condition variable and its lock. This costs about 40 % of their time, in take() "
                  "at a.cpp:12."),
              std::string::npos)
        << findings[0].sentence;
    EXPECT_NE(findings[0].advice.find("Hand over more items at a time."), std::string::npos) << findings[0].advice;
  }
}

TEST(Sentences, PlacesOfFunctions) {
  EXPECT_EQ(place_in_words("live", "/src/a.cpp", 4), "live() at a.cpp:4");
  EXPECT_EQ(place_in_words("live(void*)", "", 0), "live(void*)");
  EXPECT_EQ(place_in_words("(anonymous namespace)::live", "", 0), "live()");
  EXPECT_EQ(place_in_words("(anonymous namespace)::live(int)", "", 0), "live(int)");
  EXPECT_EQ(in_short("a::(anonymous namespace)::account<(anonymous namespace)::Deque, (anonymous namespace)::Task>"),
            "a::account<Deque, Task>()");
}

TEST(Findings, AConditionVariableAndItsLockInOneStruct) {
  Analysis a = analysis_of_two_threads();
  a.communication.objects = {exchanged_object("queue", 0.8, 0.3, {0.1, 0.4})};
  ObjectRow& object = a.communication.objects[0];
  object.kind = ObjectKind::global;
  object.size = 128;
  object.field = "mutex";
  object.sharing = {SharingKind::lock, SharingKind::condition};
  object.sync_fields = {{"mutex", SharingKind::lock, 0.5}, {"ready", SharingKind::condition, 0.3}};
  const Finding found = findings_of(a)[0];
  EXPECT_NE(found.sentence.find(
                "cache lines of the condition variable `queue.ready` and the lock `queue.mutex` (in a "
                "global of 128 bytes) to thread 1: a condition variable and its lock. This costs about 40 % of "
                "their time"),
            std::string::npos)
      << found.sentence;
  EXPECT_EQ(found.kind, "condition");
  EXPECT_EQ(found.object, "queue");
  EXPECT_NE(found.advice.find("Hand over more items at a time."), std::string::npos) << found.advice;
  object.sync_fields[1].cost_s = 0.01;
  EXPECT_EQ(findings_of(a)[0].kind, "lock") << "hardly anything is spent on the other";
  object.sync_fields = {{"in", SharingKind::lock, 0.5}, {"out", SharingKind::lock, 0.3}};
  EXPECT_EQ(findings_of(a)[0].kind, "lock");
}

TEST(Findings, ALockThatIsUsedElsewhereIsItsOwn) {
  EXPECT_EQ(findings_of(analysis_of_waiting(30, "other")).size(), 3U);
  Analysis others = analysis_of_waiting(12, "take");
  others.communication.objects[0].cells[0].consumer = 2;
  EXPECT_EQ(findings_of(others).size(), 3U) << "of other threads";
}

TEST(Findings, ObjectsOfCPythonHaveNoCounterThatAProgramCanChange) {
  for (const auto& [name, field] : {std::pair{"_Py_NoneStruct", "ob_refcnt"}, std::pair{"small_ints", "[6].ob_refcnt"},
                                    std::pair{"_PyRuntime", "small_ints[6]"}, std::pair{"small_ints[262]", ""}}) {
    ObjectRow object;
    object.name = name;
    object.field = field;
    object.kind = ObjectKind::global;
    object.sharing.kind = SharingKind::shared_counter;
    EXPECT_NE(advice_for(object, {}).find("use processes or a free-threaded build"), std::string::npos) << name;
    EXPECT_EQ(advice_for(object, {}).find("Give each thread its own counter"), std::string::npos) << name;
    object.sharing.kind = SharingKind::lock;
    EXPECT_EQ(advice_for(object, {}).find("CPython"), std::string::npos) << name;
  }
  ObjectRow counter;
  counter.name = "PyCounter";
  counter.kind = ObjectKind::global;
  counter.sharing.kind = SharingKind::shared_counter;
  EXPECT_NE(advice_for(counter, {}).find("Give each thread its own counter"), std::string::npos);
}

TEST(Findings, ExchangesThatGainNothingComeLast) {
  Analysis a = analysis_of_waits();
  a.communication.objects = {exchanged_object("queue", 1.5, 0.0, {0, 0}),
                             exchanged_object("counted", 0.1, 0.05, {0.02, 0.08})};
  a.communication.objects[0].true_sharing.detections = 30;
  a.communication.objects[0].true_sharing.one_processor = true;
  a.communication.objects[0].sharing.kind = SharingKind::shared_counter;
  const auto findings = findings_of(a);
  ASSERT_EQ(findings.size(), 5U) << "two objects, two waits, a loop";
  EXPECT_EQ(findings[0].kind, "wait");
  EXPECT_EQ(findings.back().object, "queue");
  const std::string& sentence = findings.back().sentence;
  EXPECT_EQ(sentence.find("saves nothing"), sentence.rfind("saves nothing")) << sentence;
  EXPECT_NE(sentence.find("so no cache line had to move. Fewer"), std::string::npos) << sentence;
}

TEST(Findings, OnOneProcessorNoLineMoves) {
  Analysis a = analysis_of_two_threads();
  a.loops.clear();
  a.communication.objects = {exchanged_object("queue", 0.88, 0.0, {0, 0})};
  ObjectRow& object = a.communication.objects[0];
  object.true_sharing.detections = 30;
  object.true_sharing.one_processor = true;
  const std::string all_of_it = findings_of(a)[0].sentence;
  EXPECT_NE(
      all_of_it.find("on one processor when this was seen, so no cache line had to move: padding saves nothing. "
                     "Fewer exchanges may save context switches, wake-ups and lock operations; that is not estimated."),
      std::string::npos)
      << all_of_it;
  EXPECT_EQ(all_of_it.find("0 % of their"), std::string::npos) << all_of_it;
  object.false_sharing.detections = 1;
  EXPECT_EQ(findings_of(a)[0].sentence.find("on one processor"), std::string::npos) << "a line has moved";
  object.false_sharing.one_processor = true;
  object.sharing.kind = SharingKind::false_sharing;
  EXPECT_EQ(findings_of(a)[0].advice, "") << "padding saves nothing";
}

TEST(Findings, BriefThreadsGiveTheirNameWhereTheyHaveMostOfTheTime) {
  Analysis a = analysis_of_two_threads();
  a.communication.objects = {exchanged_object("counted", 0.6, 0.1, {0.1, 0.1})};
  a.threads[1].brief = true;
  a.threads[1].cpu_s = 0.2;
  EXPECT_NE(findings_of(a)[0].sentence.find("costs about 50 % of their time"), std::string::npos)
      << findings_of(a)[0].sentence;
  a.threads[1].cpu_s = 2;
  EXPECT_NE(findings_of(a)[0].sentence.find("of their time"), std::string::npos) << "one is no group";
  a.threads.push_back(a.threads[1]);
  a.threads[2].index = 2;
  EXPECT_NE(findings_of(a)[0].sentence.find("costs about 12 % of the time of all 2 brief threads"), std::string::npos)
      << findings_of(a)[0].sentence;
}

TEST(Findings, NothingIsSaidTwice) {
  Analysis a = analysis_of_two_threads();
  a.communication.objects = {exchanged_object("o", 0.5, 0.1, {0.1, 0.1})};
  ObjectRow& object = a.communication.objects[0];
  object.cells = {cell(0, 1, 0.36, 0.14, 30)};
  object.sharing.perhaps = SharingKind::false_sharing;
  EXPECT_NE(findings_of(a)[0].sentence.find("28 % false sharing. This costs"), std::string::npos)
      << findings_of(a)[0].sentence;
  object.sharing.perhaps = SharingKind::lock;
  EXPECT_NE(findings_of(a)[0].sentence.find("28 % false sharing (some of it may be a lock)"), std::string::npos)
      << findings_of(a)[0].sentence;
  a.loops.clear();
  a.communication.objects = {exchanged_object("o", 0.002, 0.001, {0.001, 0.001})};
  a.communication.objects[0].true_sharing.cost_ci95 = Interval{0.001, 0.006};
  EXPECT_NE(findings_of(a)[0].sentence.find("costs less than 1 % of their time"), std::string::npos)
      << findings_of(a)[0].sentence;
}

TEST(Findings, SizesAreThoseOfTheWholeObject) {
  Analysis a = analysis_of_two_threads();
  a.communication.objects = {exchanged_object("table", 0.5, 0.1, {0.1, 0.1})};
  ObjectRow& object = a.communication.objects[0];
  object.kind = ObjectKind::heap;
  object.size = 3 << 19;
  EXPECT_NE(findings_of(a)[0].sentence.find("`table` (heap, 1.5 MiB)"), std::string::npos)
      << findings_of(a)[0].sentence;
  object.field = "head";
  EXPECT_NE(findings_of(a)[0].sentence.find("`table.head` (in a heap block of 1.5 MiB)"), std::string::npos)
      << findings_of(a)[0].sentence;
}

TEST(Findings, HintsComeLast) {
  Analysis a = analysis_of_two_threads();
  a.communication.objects = {exchanged_object("rare", 0.9, 0.9, {0.1, 0.9}),
                             exchanged_object("often", 0.2, 0.1, {0.05, 0.2})};
  a.communication.objects[0].cells = {cell(0, 1, 0.9, 0, 3)};
  const auto findings = findings_of(a);
  EXPECT_EQ(findings[0].kind, "loop");
  EXPECT_EQ(findings[1].object, "often");
  EXPECT_EQ(findings[2].kind, "hint");
}

TEST(Findings, WhereTheTimeGoesComesFirstUnlessThreadsLoseMuch) {
  Analysis a = analysis_of_two_threads();
  a.communication.objects = {exchanged_object("often", 0.3, 0.1, {0.05, 0.2})};
  EXPECT_EQ(findings_of(a)[0].kind, "loop") << "15 % of the CPU time";
  EXPECT_EQ(findings_of(a)[1].object, "often");
  a.communication.objects = {exchanged_object("often", 0.5, 0.1, {0.05, 0.2})};
  EXPECT_EQ(findings_of(a)[0].object, "often");
  EXPECT_EQ(findings_of(a)[1].kind, "loop");
}

TEST(Findings, NothingSeen) {
  Analysis a = analysis_of_two_threads();
  a.loops.clear();
  EXPECT_EQ(findings_of(a)[0].sentence,
            "No communication between threads was seen in 500 samples and 60 watched lines.");
  a.sampling.armed = 3;
  EXPECT_NE(findings_of(a)[0].sentence.find("too little to rule it out: record for longer."), std::string::npos);
  a.session.exit_status = 0;
  EXPECT_NE(findings_of(a)[0].sentence.find("let the program run for longer, or record it with a shorter --period."),
            std::string::npos)
      << "it has ended: " << findings_of(a)[0].sentence;
  a.sampling.armed = 0;
  EXPECT_NE(findings_of(a)[0].sentence.find("nothing can be said"), std::string::npos);
}

TEST(Findings, NothingSeenForAReasonThatTimeDoesNotMend) {
  Analysis a = analysis_of_two_threads();
  a.loops.clear();
  a.sampling.armed = 0;
  a.processes.assign(10, {});
  for (profile::ProcessRow& process : a.processes) {
    process.observation = profile::Observation::outside;
  }
  a.cpu_s = 2;
  EXPECT_EQ(findings_of(a)[0].sentence.find("budget"), std::string::npos);
  a.session.recorder_cpu_ns = 55'000'000;
  EXPECT_NE(
      findings_of(a)[0].sentence.find("To see some, record with a higher --budget: watching 10 processes from outside "
                                      "uses up the present one."),
      std::string::npos)
      << findings_of(a)[0].sentence;
  a.sampling.armed = 3;
  a.session.skipped_probes.went_on = 100;
  EXPECT_NE(findings_of(a)[0].sentence.find("let the recorder use the program's processors"), std::string::npos)
      << findings_of(a)[0].sentence;
  a.communication.undetected.at_most_s = 0.004;
  a.communication.undetected.met = false;
  EXPECT_EQ(findings_of(a)[0].sentence,
            "No sample fell into a time when two threads that share memory were alive, so there is next to no "
            "communication between threads (500 samples).");
  a.threads[1].samples = 0;
  a.threads[1].cpu_s = 0.001;
  EXPECT_EQ(findings_of(a)[0].sentence,
            "Only one thread was sampled, so nothing can be said about communication between threads (500 samples).");
  a.communication.undetected.at_most_s = 0;
  EXPECT_EQ(findings_of(a)[0].sentence,
            "No two threads lived at the same time, so there is no communication between threads (500 samples).");
  a.threads[1].cpu_s = 0;
  EXPECT_EQ(findings_of(a)[0].sentence,
            "Only one thread used CPU time, so there is no communication between threads (500 samples).");
  a.communication.undetected.at_most_s = 0.004;
  EXPECT_EQ(findings_of(a)[0].sentence,
            "Only one thread used CPU time, so there is next to no communication between threads (500 samples).");
  EXPECT_EQ(findings_of(Analysis{})[0].sentence.find("No samples were taken: "), 0U);
}

TEST(Findings, WhatWasNotSeenIsJudgedByItsLimit) {
  Analysis a = analysis_of_two_threads();
  a.loops.clear();
  a.session.exit_status = 0;
  a.communication.undetected.at_most_s = 1.24;
  EXPECT_EQ(findings_of(a)[0].sentence,
            "No communication between threads was seen in 500 samples and 60 watched lines. That is too little to rule "
            "it out: let the program run for longer, or record it with a shorter --period.");
  a.communication.undetected.at_most_s = 0.08;
  a.sampling.armed = 3;
  EXPECT_EQ(findings_of(a)[0].sentence, "No communication between threads was seen in 500 samples and 3 watched lines.")
      << "the limit says more than counts do";
}

TEST(Findings, TimeInTheKernelIsSaid) {
  Analysis a = analysis_of_two_threads();
  const std::size_t without = findings_of(a).size();
  a.cpu_s = 4;
  for (ThreadSummary& thread : a.threads) {
    thread.cpu_s = 2;
    thread.kernel_share = 0.9;
  }
  const auto findings = findings_of(a);
  ASSERT_EQ(findings.size(), without + 1);
  EXPECT_EQ(findings.back().sentence.find("The kernel takes 90 % of the CPU time"), 0U) << findings.back().sentence;
}

TEST(Findings, LongNamesAreShortened) {
  Analysis a = analysis_of_two_threads();
  a.loops[0].function =
      "app::Table<std::string, std::vector<std::pair<int, int>>>::find(std::string const&, unsigned long, bool) const";
  EXPECT_NE(findings_of(a)[0].sentence.find("in app::Table<...>::find() const at a.cpp:29-31"), std::string::npos)
      << findings_of(a)[0].sentence;
}

TEST(Findings, AShareOfFewSamplesIsAHint) {
  Analysis a = analysis_of_two_threads();
  EXPECT_EQ(findings_of(a)[0].sentence.find("hint"), std::string::npos);
  a.sampling.samples = 1;
  EXPECT_NE(findings_of(a)[0].sentence.find("This is a hint only: it rests on 1 sample."), std::string::npos);
}

TEST(Findings, SmallObjectsAreLeftOut) {
  Analysis a = analysis_of_two_threads();
  for (const double cost : {0.5, 0.2, 0.001}) {
    ObjectRow object;
    object.name = "o";
    object.cells = {cell(0, 1, cost, 0, 30)};
    object.cost_s = cost;
    a.communication.objects.push_back(object);
  }
  EXPECT_EQ(findings_of(a).size(), 3U);  // two objects and the loop
}

}  // namespace
}  // namespace crosstalk::attribution::test::overview_test
