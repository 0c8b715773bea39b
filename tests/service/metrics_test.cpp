// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/service/openmetrics.h"

namespace crosstalk::service::metrics_test {
namespace {

using openmetrics::Exposition;
using openmetrics::Labels;
using openmetrics::parse;
using ::testing::HasSubstr;

// A report in small: what the metrics are made of, and things of another type that count as unknown.
constexpr const char* report = R"({"schema":"crosstalk.report/1","duration_s":60.5,"cpu_s":100,
  "sampling":{"source":"clock","method":"watch","lost":7,"overhead":{"fraction":0.01}},
  "threads":[{"index":0,"name":"main"},{"index":1,"name":"w"},{"index":2,"name":"w"},{"index":"3","name":"x"}],
  "communication":{"totals":{"true_sharing":{"cost_s":2,"gain_s":1,"gain_ci95":[0.5,1.5]},
                             "false_sharing":{"cost_s":3,"gain_s":null,"gain_ci95":null}},
    "cells":[{"producer":0,"consumer":1,"true":{"cost_s":1,"gain_s":0.5},"false":{"cost_s":2}},
             {"producer":0,"consumer":2,"true":{"cost_s":1,"gain_s":0.25,"gain_ci95":[0,1]},"false":null}]},
  "objects":[{"name":"queue","cost_s":4,"gain_s":2,"gain_ci95":[1,3]},{"name":"a \"b\"\\\n","cost_s":1}],
  "loops":[{"function":"f","file":"f.c","line_begin":3,"line_end":9,"self_s":8.5},{"function":"f","file":"f.c",
           "line_begin":3,"line_end":9,"self_s":0.5},{"function":"g","file":"g.c","line_begin":1,"line_end":1}]})";

IntervalFigures figures(const std::string& json = report) {
  auto read = figures_of(json);
  EXPECT_TRUE(read) << read.error().message;
  return read.value_or(IntervalFigures{});
}

Exposition text_of(const Metrics& metrics, const DaemonFigures& daemon = {}) {
  Exposition exposition = parse(metrics.text(daemon));
  EXPECT_EQ(exposition.fault, "") << metrics.text(daemon);
  return exposition;
}

TEST(Figures, AreTheReports) {
  const IntervalFigures read = figures();
  EXPECT_EQ(read.recorded_s, 60.5);
  EXPECT_EQ(read.cpu_s, 100);
  EXPECT_EQ(read.overhead_s, 1);
  EXPECT_EQ(read.lost, 7U);
  EXPECT_EQ(read.source, "clock");
  EXPECT_EQ(read.method, "watch");
  EXPECT_TRUE(read.communication_known);
  EXPECT_EQ(read.all.cost, 5);
  EXPECT_EQ(read.all.gain, 1);
  EXPECT_EQ(read.all.gain_limit, 1.5);
  ASSERT_EQ(read.pairs.size(), 1U);  // two threads of one name
  EXPECT_EQ(read.pairs.at({"main", "w"}).cost, 4);
  EXPECT_EQ(read.pairs.at({"main", "w"}).gain_limit, 1.5);
  EXPECT_EQ(read.objects.at("queue").gain_limit, 3);
  EXPECT_EQ(read.loops.at({"f", "f.c:3-9"}), 9);
  EXPECT_EQ(read.loops.at({"g", "g.c:1-1"}), 0);
}

TEST(Figures, OfABlindIntervalAreUnknown) {
  EXPECT_FALSE(figures(R"({"schema":"crosstalk.report/1"})").communication_known);
  EXPECT_FALSE(figures(R"({"schema":"crosstalk.report/1","communication":{"totals":{"true_sharing":{"cost_s":null}}}})")
                   .communication_known);
}

TEST(Figures, OfAnythingElseAreRefused) {
  for (const char* const json : {"", "{", "[]", "5", "{}", R"({"schema":"crosstalk.roofline/1"})", R"({"schema":5})"}) {
    const auto read = figures_of(json);
    ASSERT_FALSE(read) << json;
    EXPECT_EQ(read.error().code, ErrorCode::corrupt);
  }
  EXPECT_FALSE(figures_of(std::string(10'000, '[')));
}

TEST(Figures, SurviveWrongTypesAndExtremes) {
  const IntervalFigures read = figures(R"({"schema":"crosstalk.report/1","duration_s":-5,"cpu_s":"x","sampling":[],
    "threads":{"index":1},"communication":{"totals":[],"cells":[5,{"producer":1e300,"consumer":18446744073709551615,
    "true":{"cost_s":-1,"gain_s":-2,"gain_ci95":[0]}}]},"objects":[{"name":5,"cost_s":1e308}],"loops":[null,
    {"line_begin":1e300,"self_s":-1}]})");
  EXPECT_EQ(read.recorded_s, 0);
  EXPECT_EQ(read.pairs.begin()->second.cost, 0);
  EXPECT_EQ(figures(R"({"schema":"crosstalk.report/1","sampling":{"lost":1e300}})").lost, 1'000'000'000'000'000U);
}

TEST(Metrics, AreOpenMetrics) {
  Metrics metrics(20);
  metrics.add("web", figures());
  metrics.add_failure("web");
  metrics.add_failure("db");
  DaemonFigures daemon;
  daemon.sessions = 2;
  daemon.sessions_begun = 9;
  daemon.refusals = 4;
  daemon.profiles = 3;
  daemon.profile_bytes = 1'234'567'890'123;
  daemon.watched = {{"web", true}, {"db", false}};
  const Exposition exposition = text_of(metrics, daemon);
  const Labels web{{"service", "web"}};
  EXPECT_EQ(exposition.value("crosstalk_intervals", web), 1);
  EXPECT_EQ(exposition.value("crosstalk_interval_failures", web), 1);
  EXPECT_EQ(exposition.value("crosstalk_interval_failures", {{"service", "db"}}), 1);
  EXPECT_EQ(exposition.value("crosstalk_blind_intervals", web), 0);
  EXPECT_EQ(exposition.value("crosstalk_recorded_seconds", web), 60.5);
  EXPECT_EQ(exposition.value("crosstalk_cpu_seconds", web), 100);
  EXPECT_EQ(exposition.value("crosstalk_overhead_seconds", web), 1);
  EXPECT_EQ(exposition.value("crosstalk_lost_records", web), 7);
  EXPECT_EQ(exposition.value("crosstalk_recording", {{"service", "web"}, {"source", "clock"}, {"method", "watch"}}), 1);
  EXPECT_EQ(exposition.value("crosstalk_communication_cost_seconds", web), 5);
  EXPECT_EQ(exposition.value("crosstalk_communication_gain_limit_seconds", web), 1.5);
  EXPECT_EQ(exposition.value("crosstalk_object_cost_seconds", {{"service", "web"}, {"object", "a \"b\"\\\n"}}), 1);
  EXPECT_EQ(
      exposition.value("crosstalk_pair_cost_seconds", {{"service", "web"}, {"producer", "main"}, {"consumer", "w"}}),
      4);
  EXPECT_EQ(
      exposition.value("crosstalk_loop_cpu_seconds", {{"service", "web"}, {"function", "f"}, {"lines", "f.c:3-9"}}), 9);
  EXPECT_EQ(exposition.value("crosstalk_watched", web), 1);
  EXPECT_EQ(exposition.value("crosstalk_watched", {{"service", "db"}}), 0);
  EXPECT_EQ(exposition.value("crosstalk_sessions"), 2);
  EXPECT_EQ(exposition.value("crosstalk_sessions_begun"), 9);
  EXPECT_EQ(exposition.value("crosstalk_refusals"), 4);
  EXPECT_EQ(exposition.value("crosstalk_profiles"), 3);
  EXPECT_EQ(exposition.value("crosstalk_profile_bytes"), 1'234'567'890'123);
  for (const auto& [name, family] : exposition.families) {
    EXPECT_NE(family.help, "") << name;
  }
  EXPECT_EQ(exposition.families.at("crosstalk_profile_bytes").unit, "bytes");
}

TEST(Metrics, WithoutServicesAreOpenMetricsToo) { (void)text_of(Metrics(20)); }

TEST(Metrics, CountersNeverFall) {
  Metrics metrics(2);
  Exposition before = text_of(metrics);
  for (int i = 0; i < 50; ++i) {
    IntervalFigures interval = figures();
    interval.objects["object " + std::to_string(i % 7)] = {1.0 + i, 0.5, 0.75};
    interval.loops[{"loop", std::to_string(i % 5)}] = i;
    metrics.add("web", interval);
    const Exposition now = text_of(metrics);
    for (const auto& [name, family] : before.families) {
      for (const auto& [labels, value] : family.samples) {
        EXPECT_GE(now.value(name, labels), value) << name;
      }
    }
    before = now;
  }
}

TEST(Metrics, AddUpTheRowsBeyondTheLimitAsOther) {
  Metrics metrics(2);
  IntervalFigures first;
  first.objects = {{"a", {1, 0, 0}}, {"b", {3, 0, 0}}, {"c", {2, 0, 0}}};
  metrics.add("web", first);
  IntervalFigures second;
  second.objects = {{"a", {100, 0, 0}}, {"b", {10, 0, 0}}};
  metrics.add("web", second);
  const Exposition exposition = text_of(metrics);
  const auto object = [&](const char* name) {
    return exposition.value("crosstalk_object_cost_seconds", {{"service", "web"}, {"object", name}});
  };
  EXPECT_EQ(object("b"), 13);  // those of most cost in the first interval stay
  EXPECT_EQ(object("c"), 2);
  EXPECT_EQ(object("other"), 101);
  EXPECT_EQ(exposition.families.at("crosstalk_object_cost_seconds").samples.size(), 3U);
}

TEST(Metrics, AnObjectCalledOtherTakesNobodysPlace) {
  Metrics metrics(1);
  IntervalFigures interval;
  interval.objects = {{"other", {5, 0, 0}}, {"a", {4, 0, 0}}, {"b", {3, 0, 0}}};
  metrics.add("web", interval);
  const Exposition exposition = text_of(metrics);
  EXPECT_EQ(exposition.value("crosstalk_object_cost_seconds", {{"service", "web"}, {"object", "other"}}), 8);
  EXPECT_EQ(exposition.value("crosstalk_object_cost_seconds", {{"service", "web"}, {"object", "a"}}), 4);
}

TEST(Metrics, WithoutRowsAllIsOther) {
  Metrics metrics(0);
  metrics.add("web", figures());
  const Exposition exposition = text_of(metrics);
  EXPECT_EQ(exposition.value("crosstalk_object_cost_seconds", {{"service", "web"}, {"object", "other"}}), 5);
  EXPECT_EQ(
      exposition.value("crosstalk_loop_cpu_seconds", {{"service", "web"}, {"function", "other"}, {"lines", "other"}}),
      9);
}

TEST(Metrics, LimitEachServiceByItself) {
  Metrics metrics(1);
  for (const char* const service : {"web", "db"}) {
    IntervalFigures interval;
    interval.objects = {{std::string(service) + "'s", {5, 0, 0}}};
    metrics.add(service, interval);
  }
  const Exposition exposition = text_of(metrics);
  EXPECT_EQ(exposition.value("crosstalk_object_cost_seconds", {{"service", "db"}, {"object", "db's"}}), 5);
  EXPECT_EQ(exposition.value("crosstalk_object_cost_seconds", {{"service", "web"}, {"object", "web's"}}), 5);
}

// The reader finds faults: else none of the tests above would say anything.
TEST(OpenMetricsReader, FindsFaults) {
  EXPECT_EQ(parse("# TYPE a counter\na_total 1\n# EOF\n").fault, "");
  for (const auto& [text, fault] : {
           std::pair{"a_total 1\n# EOF\n", "without a type"},
           {"# TYPE a counter\na 1\n# EOF\n", "suffix"},
           {"# TYPE a gauge\na_total 1\n# EOF\n", "suffix"},
           {"# TYPE a counter\na_total -1\n# EOF\n", "below 0"},
           {"# TYPE a counter\na_total nan\n# EOF\n", "no number"},
           {"# TYPE a counter\na_total 1\n", "no # EOF"},
           {"# TYPE a counter\na_total 1\n# EOF\nx\n", "after # EOF"},
           {"# TYPE a counter\na_total 1\n# HELP a b\n# EOF\n", "after samples"},
           {"# TYPE a counter\na_total 1\n# TYPE b gauge\n# TYPE a counter\n# EOF\n", "not together"},
           {"# TYPE a counter\na_total 1\na_total 2\n# EOF\n", "same labels"},
           {"# TYPE a counter\n# UNIT a seconds\na_total 1\n# EOF\n", "unit"},
           {"# TYPE a gauge\na{b=\"\\x\"} 1\n# EOF\n", "escape"},
           {"# TYPE a gauge\na{b=\"x\"\"} 1\n# EOF\n", "comma"},
           {"# TYPE a gauge\na{b=\"x} 1\n# EOF\n", "no end"},
           {"# TYPE a gauge\na 1", "no end"},
       }) {
    EXPECT_THAT(parse(text).fault, HasSubstr(fault)) << text;
  }
}

}  // namespace
}  // namespace crosstalk::service::metrics_test
