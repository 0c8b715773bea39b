// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "attribution/busy/loop_figures.h"
#include "driver/json/report.h"
#include "sample_analysis.h"

namespace crosstalk::driver::json_report_test {
namespace {

using nlohmann::json;

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& [name, value] : object.items()) {
    names.insert(name);
  }
  return names;
}

void expect_keys(const json& object, const std::set<std::string>& wanted) {
  const auto found = keys(object);
  for (const std::string& name : wanted) {
    EXPECT_TRUE(found.contains(name)) << name;
  }
}

const std::set<std::string> head = {"waits",      "waits_measured", "schema",   "command",    "exit_status",
                                    "duration_s", "cpu_s",          "complete", "machine",    "processes",
                                    "threads",    "warnings",       "filter",   "processors", "unobserved_cpu_s"};

json whole() { return json::parse(render_json(test::sample_analysis(), std::nullopt)); }

TEST(JsonReport, HasTheHeadOfTheContract) {
  const json report = whole();
  expect_keys(report, head);
  EXPECT_EQ(report["schema"], "crosstalk.report/1");
  expect_keys(report["processes"][0], {"pid", "parent", "command", "exit_status", "observation", "unobserved_because"});
  expect_keys(report["threads"][0], {"index", "pid", "tid", "name", "cpu_s", "brief"});
  expect_keys(report["warnings"][0], {"code", "message"});
}

TEST(JsonReport, HasTheSamplingOfTheContract) {
  const json sampling = whole()["sampling"];
  expect_keys(sampling, {"source", "source_choice", "method", "method_choice", "partner", "estimator", "samples",
                         "lost", "armed", "traps", "unknown_frames", "events", "overhead"});
  expect_keys(sampling["events"][0], {"name", "period", "unit", "samples"});
  const json& settings = sampling["settings"];
  EXPECT_DOUBLE_EQ(settings["period_s"].get<double>(), 0.004);
  EXPECT_DOUBLE_EQ(settings["budget"].get<double>(), 0.03);
  EXPECT_EQ(settings["watchpoints"], 4);
  EXPECT_EQ(settings["board_slots"], 4096);
  expect_keys(sampling["overhead"],
              {"fraction", "handlers_s", "switches_s", "stand_ins_s", "recorder_s", "memory_bytes"});
}

TEST(JsonReport, SaysWhatTheSelfTestOfWatchpointsFound) {
  auto analysis = test::sample_analysis();
  const auto watchpoints = [&] { return json::parse(render_json(analysis, std::nullopt))["sampling"]["watchpoints"]; };
  EXPECT_TRUE(watchpoints().is_null()) << "a profile of before there was one";
  for (const auto& [verdict, name] :
       {std::pair(profile::TrialVerdict::fires, "fires"), std::pair(profile::TrialVerdict::partly, "partly"),
        std::pair(profile::TrialVerdict::never, "never"), std::pair(profile::TrialVerdict::not_opened, "not_opened"),
        std::pair(profile::TrialVerdict::untestable, "untestable")}) {
    analysis.session.watch_trial = {verdict, profile::trial_locked | profile::trial_sigtrap, 3, "why", ""};
    const json found = watchpoints();
    EXPECT_EQ(found["registers"], 3);
    EXPECT_EQ(found["self_test"], name);
    EXPECT_EQ(found["silent"], (json{"locked_update", "sigtrap"}));
    EXPECT_EQ(found["why"], "why");
    EXPECT_TRUE(found["remedy"].is_null());
  }
}

TEST(JsonReport, HasTheCommunicationOfTheContract) {
  const json report = whole();
  for (const char* const name : {"cells", "cores", "invalidations"}) {
    for (const json& cell : report["communication"][name]) {
      EXPECT_NE(cell["producer"], cell["consumer"]);
      for (const char* const kind : {"true", "false"}) {
        expect_keys(cell[kind], {"count", "count_ci95", "count_unknown", "cost_s", "cost_ci95"});
      }
    }
  }
  const json& cell = report["communication"]["cells"][0];
  EXPECT_TRUE(cell["true"]["cost_s"].is_null());
  EXPECT_DOUBLE_EQ(cell["false"]["cost_s"].get<double>(), 0.412);
  EXPECT_EQ(cell["false"]["cost_ci95"].size(), 2U);
  EXPECT_TRUE(cell["false"]["count"].is_null());
}

TEST(JsonReport, HasTheRowsOfTheContract) {
  const json report = whole();
  expect_keys(report["lines"][0], {"file", "line", "function", "role", "cells", "call_paths"});
  expect_keys(report["objects"][0], {"name", "kind", "size", "field", "allocated_at", "cells", "offsets"});
  expect_keys(report["objects"][0]["offsets"][0], {"thread", "offset", "bytes", "loads", "stores"});
  expect_keys(report["loops"][0],
              {"id", "parent", "function", "file", "line_begin", "line_end", "depth", "cpu_s", "self_s", "share",
               "rates", "busy", "waits", "class", "application_classes", "advice", "threads"});
  EXPECT_TRUE(report["loops"][0]["parent"].is_null());
  EXPECT_EQ(report["loops"][1]["parent"], 1);
}

TEST(JsonReport, SaysHowThreadsGotProcessors) {
  EXPECT_TRUE(whole()["waits"].is_null());
  auto analysis = test::sample_analysis();
  analysis.session.waits = {3, 1'000'000'000, 3'000'000'000};
  const json waits = json::parse(render_json(analysis, std::nullopt, nullptr))["waits"];
  EXPECT_EQ(waits["threads"], 3);
  EXPECT_DOUBLE_EQ(waits["waited_s"].get<double>(), 3);
  EXPECT_DOUBLE_EQ(waits["share"].get<double>(), 0.75);
}

TEST(JsonReport, UnknownIsNullNeverZero) {
  const json report = whole();
  EXPECT_TRUE(report["threads"][4]["cpu_s"].is_null());
  EXPECT_TRUE(report["lines"][1]["file"].is_null());
  EXPECT_TRUE(report["lines"][1]["line"].is_null());
  expect_keys(report["loops"][0]["rates"], {"iterations_per_s", "instructions_per_s", "flops_per_s", "loads_per_s",
                                            "stores_per_s", "bytes_per_s", "ci95", "reasons", "walked", "walks"});
  EXPECT_TRUE(report["loops"][0]["rates"]["iterations_per_s"].is_null());
  EXPECT_TRUE(report["machine"]["cpu_model"].is_null());
  for (const char* const name : {"busy", "waits", "class", "application_classes", "advice"}) {
    EXPECT_TRUE(report["loops"][0][name].is_null()) << name;
  }
}

TEST(JsonReport, BusyTimesAreThereOrHaveAReason) {
  auto analysis = test::sample_analysis();
  attribution::LoopFigures figures;
  figures.busy[models::Unit::memory] = {0.4, 0.8, 0.7};
  figures.busy[models::Unit::l2] = {0.25, 0.5, std::nullopt};
  figures.per_s[models::Unit::memory] = 2e10;
  figures.reasons[models::Unit::fpu] = "it calls functions";
  figures.busy[models::Unit::l3].exists = false;
  figures.busy_class = {models::BusyClass::in_memory, "Memory was busy."};
  figures.application.candidates = {{models::ApplicationClass::high_bf_direct, "Many bytes."}};
  figures.advice = {{"Block it", "Less is moved.", "Memory is busy.", "5.2.1"}};
  figures.waits.at(models::CycleClass::memory) = 0.3;
  figures.waits.at(models::CycleClass::unattributed) = 0.2;
  figures.bytes_to_flops = INFINITY;
  analysis.loops[0].figures = std::make_shared<attribution::LoopFigures>(figures);
  const json loop = json::parse(render_json(analysis, View::loops))["loops"][0];
  EXPECT_EQ(loop["busy"]["memory"]["of_effective"], 0.8);
  EXPECT_EQ(loop["busy"]["memory"]["of_theoretical"], 0.7);
  EXPECT_EQ(loop["busy"]["memory"]["per_s"], 2e10);
  EXPECT_EQ(loop["busy"]["l2"]["of_effective"], 0.5);
  EXPECT_TRUE(loop["busy"]["l2"]["of_theoretical"].is_null()) << "no peak is documented";
  EXPECT_TRUE(loop["busy"]["fpu"].is_null());
  EXPECT_EQ(loop["busy"]["reasons"]["fpu"], "it calls functions");
  EXPECT_EQ(loop["busy"]["reasons"]["l3"], "the machine has none");
  EXPECT_TRUE(loop["busy"]["bytes_to_flops"].is_null());
  EXPECT_EQ(loop["class"], "in_memory");
  EXPECT_EQ(loop["application_classes"][0]["class"], "high_bf_direct");
  EXPECT_EQ(loop["application_classes"][0]["number"], 5);
  EXPECT_EQ(loop["advice"][0]["section"], "5.2.1");
  EXPECT_EQ(loop["waits"]["memory"], 0.3);
  EXPECT_TRUE(loop["waits"]["lock"].is_null());
}

TEST(JsonReport, PerformanceIsWhatAllThreadsDidAltogether) {
  auto analysis = test::sample_analysis();
  analysis.session.config.measure_waits = 1;
  attribution::LoopRow& row = analysis.loops[0];
  row.cpu_s = 4;
  row.rates.flops.per_s = 3e9;
  row.rates.loads.per_s = 1e9;
  row.threads = {{1, 2, 2, 0.5}, {2, 2, 2, 0}};
  attribution::LoopFigures figures;
  figures.threads = 2;
  figures.per_s[models::Unit::l2] = 64e6;
  figures.served = models::LevelShares{0.75, 0.25, 0, 0};
  figures.access_bytes = 8;
  models::FlopMix mix;
  mix.add(models::Width::avx2, models::Precision::double_precision, models::Operation::fma, 2e9);
  mix.other = 1e9;
  figures.flops = mix;
  row.figures = std::make_shared<attribution::LoopFigures>(figures);
  const json loop = json::parse(render_json(analysis, View::loops))["loops"][0];
  const json& found = loop["performance"];
  EXPECT_EQ(found["elapsed_s"], 2);
  EXPECT_EQ(found["flops"], 12e9);
  EXPECT_EQ(found["loads"], 4e9);
  EXPECT_EQ(found["access_bytes"], 8);
  EXPECT_EQ(found["lines"]["l2"], 4e6);
  for (const char* const name : {"instructions", "stores", "l1d_bytes", "memory_bytes"}) {
    EXPECT_TRUE(found[name].is_null()) << name;
  }
  EXPECT_TRUE(found["lines"]["memory"].is_null());
  EXPECT_EQ(found["served"], (json{{"l1d", 0.75}, {"l2", 0.25}, {"l3", 0.0}, {"memory", 0.0}}));
  EXPECT_EQ(found["flops_by_kind"], json::parse(R"([{"width":"avx2","precision":"double","operation":"fma","per_s":2e9},
                            {"width":null,"precision":null,"operation":"other","per_s":1e9}])"));
  EXPECT_EQ(loop["threads"][0]["waiting_s"], 0.5);
  analysis.session.config.measure_waits = 0;
  const json unmeasured = json::parse(render_json(analysis, View::loops))["loops"][0];
  EXPECT_TRUE(unmeasured["threads"][0]["waiting_s"].is_null()) << "unknown is not 0";
}

TEST(JsonReport, SampledWaitsHaveNoCountAndNoTimeOnTheProcessor) {
  auto analysis = test::sample_analysis();
  analysis.session.config.measure_waits = 1;
  analysis.processes.resize(1);
  analysis.processes[0].observation = profile::Observation::outside;
  analysis.loops[0].threads = {{0, 1, 1, 0}};
  analysis.loops[0].waited = attribution::Waited{0.3, 0, 0, 0, true};
  attribution::WaitPlace place;
  place.kind = profile::WaitKind::futex;
  place.waited_s = 0.3;
  place.threads = {{0, 0.3, 0}};
  place.sampled = true;
  place.looks = 30;
  place.waited_ci95 = {0.25, 0.35};
  place.through = "pthread_join";
  place.objects = {{"queue", "guard", "", attribution::ObjectKind::global, 0.3}};
  analysis.wait_places = {place};
  const json report = json::parse(render_json(analysis, View::loops));
  const json& found = report["waiting"][0];
  EXPECT_TRUE(found["count"].is_null());
  EXPECT_TRUE(found["threads"][0]["count"].is_null());
  EXPECT_EQ(found["looks"], 30);
  EXPECT_EQ(found["waited_ci95"], (json{0.25, 0.35}));
  EXPECT_EQ(found["through"], "pthread_join");
  EXPECT_EQ(found["objects"], (json::array({{{"object", "queue"}, {"field", "guard"}, {"waited_s", 0.3}}})));
  EXPECT_TRUE(report["loops"][0]["waited"]["count"].is_null());
  EXPECT_TRUE(report["loops"][0]["threads"][0]["waiting_s"].is_null());
  analysis.wait_places[0].sampled = false;
  analysis.wait_places[0].objects.clear();
  const json timed = json::parse(render_json(analysis, View::loops))["waiting"][0];
  EXPECT_EQ(timed["count"], 0);
  EXPECT_TRUE(timed["looks"].is_null() && timed["waited_ci95"].is_null() && timed["objects"].is_null());
}

TEST(JsonReport, WithoutACalibrationWaitsAreThereAndClassesNull) {
  auto analysis = test::sample_analysis();
  attribution::LoopFigures figures;
  figures.waits.at(models::CycleClass::unattributed) = 1;
  analysis.loops[0].figures = std::make_shared<attribution::LoopFigures>(figures);
  const json loop = json::parse(render_json(analysis, View::loops))["loops"][0];
  EXPECT_EQ(loop["waits"]["unattributed"], 1);
  EXPECT_TRUE(loop["busy"].is_null());
  EXPECT_TRUE(loop["class"].is_null());
  EXPECT_TRUE(loop["application_classes"].is_null());
}

TEST(JsonReport, ARateIsANumberWithAnIntervalOrNullWithAReason) {
  auto analysis = test::sample_analysis();
  analysis.loops[0].rates.iterations = {2e9, attribution::Interval{1.9e9, 2.1e9}, ""};
  analysis.loops[0].rates.bytes = {3e9, attribution::Interval{2.9e9, 3.1e9}, "", 40};
  analysis.loops[0].rates.flops = {std::nullopt, std::nullopt, "it calls functions"};
  const json rates = json::parse(render_json(analysis, View::loops))["loops"][0]["rates"];
  EXPECT_EQ(rates["iterations_per_s"], 2e9);
  EXPECT_EQ(rates["ci95"]["iterations_per_s"], (json{1.9e9, 2.1e9}));
  EXPECT_FALSE(rates["reasons"].contains("iterations_per_s"));
  EXPECT_TRUE(rates["flops_per_s"].is_null());
  EXPECT_EQ(rates["reasons"]["flops_per_s"], "it calls functions");
  EXPECT_FALSE(rates["ci95"].contains("flops_per_s"));
  EXPECT_EQ(rates["basis"], "counter");
  EXPECT_EQ(rates["walks"], 40);
  EXPECT_EQ(rates["walked"], (json{"bytes_per_s"}));
}

TEST(JsonReport, ACountIsANumberWithAnIntervalOrNullWithAReason) {
  auto analysis = test::sample_analysis();
  attribution::Cell& cell = analysis.communication.cells[0];
  cell.true_sharing.count = 1200;
  cell.true_sharing.count_ci95 = attribution::Interval{1100, 1300};
  cell.false_sharing.count_unknown = "none was seen";
  const json row = json::parse(render_json(analysis, View::matrix))["communication"]["cells"][0];
  EXPECT_EQ(row["true"]["count"], 1200.0);
  EXPECT_EQ(row["true"]["count_ci95"], (json{1100.0, 1300.0}));
  EXPECT_TRUE(row["true"]["count_unknown"].is_null());
  EXPECT_TRUE(row["false"]["count"].is_null());
  EXPECT_EQ(row["false"]["count_unknown"], "none was seen");
}

TEST(JsonReport, WhatWasNotSeenHasLimitsOrIsNull) {
  auto analysis = test::sample_analysis();
  EXPECT_TRUE(json::parse(render_json(analysis, View::matrix))["communication"]["unseen"].is_null());
  analysis.communication.unseen = attribution::Unseen{{0.25, 0.5}, {{2, {0.125, 0.375}}}};
  const json unseen = json::parse(render_json(analysis, View::matrix))["communication"]["unseen"];
  EXPECT_EQ(unseen["true_limit_s"], 0.25);
  EXPECT_EQ(unseen["false_limit_s"], 0.5);
  EXPECT_EQ(unseen["consumers"], json::array({{{"consumer", 2}, {"true_limit_s", 0.125}, {"false_limit_s", 0.375}}}));
}

TEST(JsonReport, UndetectedCostHasALimitAndReasons) {
  auto analysis = test::sample_analysis();
  json undetected = json::parse(render_json(analysis, View::matrix))["communication"]["undetected"];
  EXPECT_TRUE(undetected["at_most_s"].is_null());
  analysis.communication.undetected =
      attribution::undetected({attribution::EvidenceKind::probed, "", {}, 0.5, 0, 0.25});
  undetected = json::parse(render_json(analysis, View::matrix))["communication"]["undetected"];
  EXPECT_EQ(undetected["evidence"], "probed");
  EXPECT_EQ(undetected["at_most_s"], 0.25);
  EXPECT_FALSE(undetected["why"].get<std::string>().empty());
  const json& first = undetected["cannot_see"].front();
  EXPECT_EQ(first["code"], "silent_stores");
  EXPECT_EQ(first["what"], "stores that leave a value as it was");
  EXPECT_EQ(first["within_limit"], true);
  EXPECT_EQ(undetected["cannot_see"].back()["within_limit"], false);
}

TEST(JsonReport, MemoryOfSamples) {
  auto analysis = test::sample_analysis();
  json memory = json::parse(render_json(analysis, View::memory))["memory"];
  EXPECT_TRUE(memory["unknown"].is_null());
  EXPECT_EQ(memory["totals"]["hitm_local"], 10);
  EXPECT_EQ(memory["totals"]["found"], (json{{"l3", 40}}));
  EXPECT_EQ(memory["totals"]["latency"]["p90"], 700.0);
  EXPECT_TRUE(memory["totals"]["cost_s"].is_null()) << "no frequency is known";
  EXPECT_EQ(memory["shared_lines"][0]["offsets"][0]["hitm_local_latency"], 310.0);
  EXPECT_TRUE(memory["shared_lines"][0]["offsets"][0]["hitm_remote_latency"].is_null());
  EXPECT_EQ(memory["rows"]["shared_lines"], 3);
  EXPECT_EQ(memory["sampled_sharing"]["basis"], "samples_near_in_time");
  EXPECT_EQ(memory["sampled_sharing"]["pairs"][0]["hitm_ci95"], (json{3500.0, 16000.0}));
  EXPECT_EQ(memory["lines"][0]["call_paths"][0]["frames"][1]["function"], "main");

  analysis.memory.totals.snoop = {40};  // of none it is told
  analysis.memory.totals.lock_unknown = analysis.memory.totals.samples;
  memory = json::parse(render_json(analysis, View::memory))["memory"];
  EXPECT_TRUE(memory["totals"]["hitm_local"].is_null());
  EXPECT_TRUE(memory["totals"]["locked"].is_null());

  analysis.memory = {};
  analysis.memory.unknown = "samples are of a clock";
  memory = json::parse(render_json(analysis, View::memory))["memory"];
  EXPECT_EQ(memory, (json{{"unknown", "samples are of a clock"}}));
}

TEST(JsonReport, WhatAnImportDoesNotHaveIsNull) {
  auto analysis = test::sample_analysis();
  analysis.sampling.settings_unknown = "imported";
  const json sampling = json::parse(render_json(analysis, View::summary))["sampling"];
  EXPECT_EQ(sampling["settings_unknown"], "imported");
  for (const char* setting : {"period_s", "budget", "watchpoints", "board_slots"}) {
    EXPECT_TRUE(sampling["settings"][setting].is_null()) << setting;
  }
  EXPECT_TRUE(sampling["overhead"]["handlers_s"].is_null());
  EXPECT_TRUE(sampling["overhead"]["recorder_s"].is_null());
  EXPECT_TRUE(sampling["overhead"]["memory_bytes"].is_null());
}

TEST(JsonReport, AViewIsTheHeadAndThatPartOnly) {
  const std::map<View, std::set<std::string>> parts = {
      {View::summary, {"findings", "sampling"}},
      {View::matrix, {"communication"}},
      {View::lines, {"lines", "line_pairs"}},
      {View::objects, {"objects"}},
      {View::loops, {"loops", "functions", "kernel", "counters", "waiting"}},
      {View::threads, {}},
      {View::memory, {"memory"}}};
  for (const auto& [view, wanted] : parts) {
    std::set<std::string> all = head;
    all.insert(wanted.begin(), wanted.end());
    EXPECT_EQ(keys(json::parse(render_json(test::sample_analysis(), view))), all);
  }
}

TEST(JsonReport, SurvivesNamesThatAreNoUtf8AndNumbersThatAreNone) {
  auto analysis = test::sample_analysis();
  analysis.threads[0].name = "\xff\xfe";
  analysis.duration_s = std::numeric_limits<double>::quiet_NaN();
  analysis.loops[0].share = std::numeric_limits<double>::infinity();
  const json report = json::parse(render_json(analysis, std::nullopt));
  EXPECT_TRUE(report["duration_s"].is_null());
  EXPECT_TRUE(report["loops"][0]["share"].is_null());
}

TEST(JsonReport, AnEmptyAnalysisIsValid) { EXPECT_TRUE(json::accept(render_json({}, std::nullopt))); }

}  // namespace
}  // namespace crosstalk::driver::json_report_test
