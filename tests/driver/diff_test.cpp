// SPDX-License-Identifier: Apache-2.0
// `crosstalk diff`: its command line, and its rendering of two made analyses.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "attribution/comparison/compare.h"
#include "driver/comparison/report.h"
#include "driver/options/diff_options.h"
#include "sample_analysis.h"

namespace crosstalk::driver::diff_test {
namespace {

struct Made {
  attribution::Analysis before = test::sample_analysis();
  attribution::Analysis after = test::sample_analysis();
  Made() {
    after.communication.objects.erase(after.communication.objects.begin());
    after.communication.line_pairs.erase(after.communication.line_pairs.begin());
    after.communication.unseen = attribution::Unseen{{0.01, 0.02}, {}};
    after.cpu_s = 3;
    attribution::WaitPlace place;
    place.kind = profile::WaitKind::semaphore;
    place.waited_s = 1.25;
    before.wait_places = {place};
    before.session.config.measure_waits = 1;
    before.communication.undetected.at_most_s = after.communication.undetected.at_most_s = 0.03;
    attribution::Amount none;  // of a sort of sharing that was not seen
    none.cost_s = none.gain_s = 0;
    none.cost_ci95 = none.gain_ci95 = attribution::Interval{0, 0};
    for (attribution::Analysis* analysis : {&before, &after}) {
      for (auto& object : analysis->communication.objects) {
        const attribution::Cell& cell = object.cells.front();
        object.false_sharing = cell.false_sharing.cost_s ? cell.false_sharing : none;
        object.true_sharing = cell.true_sharing.cost_s ? cell.true_sharing : none;
      }
      analysis->communication.false_sharing = analysis->communication.objects.front().false_sharing;
      analysis->communication.true_sharing = analysis->communication.objects.front().true_sharing;
    }
  }
  [[nodiscard]] DiffReport report() const {
    return {"a.db", "b.db", &before, &after, attribution::comparison::compare(before, after, {}), {}};
  }
};

TEST(DiffOptions, NamesTwoProfiles) {
  const auto parsed = parse_diff({"--fail-if", "cost_s > 1", "a.db", "b.db", "--fail-if=cpu_s > 2"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->request->before, "a.db");
  EXPECT_EQ(parsed->request->after, "b.db");
  ASSERT_EQ(parsed->request->conditions.size(), 2U);
  EXPECT_EQ(parsed->request->conditions[1].text, "cpu_s > 2");
  EXPECT_DOUBLE_EQ(parsed->request->comparison.run_to_run, 0.15);
}

TEST(DiffOptions, ReadsAmounts) {
  const auto parsed = parse_diff({"--min-cost", "1 %", "--run-to-run", "0", "--unit", "share", "a", "b"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(parsed->request->least_cost.of_cpu);
  EXPECT_DOUBLE_EQ(parsed->request->least_cost.value, 0.01);
  EXPECT_EQ(parsed->request->comparison.unit, attribution::comparison::Unit::share);
  EXPECT_DOUBLE_EQ(parse_diff({"--min-cost=20ms", "a", "b"})->request->least_cost.value, 0.02);
}

TEST(DiffOptions, RefusesWhatItCanNotDo) {
  for (const Arguments& arguments : std::vector<Arguments>{{},
                                                           {"a"},
                                                           {"a", "b", "c"},
                                                           {"a", ""},
                                                           {"--min-cost", "much", "a", "b"},
                                                           {"--min-cost", "-1", "a", "b"},
                                                           {"--run-to-run", "101", "a", "b"},
                                                           {"--unit", "miles", "a", "b"},
                                                           {"--fail-if", "cost_s >", "a", "b"},
                                                           {"--format", "html", "a", "b"}}) {
    const auto parsed = parse_diff(arguments);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  }
}

TEST(DiffOptions, KnowsWhatWasMeant) {
  const auto parsed = parse_diff({"--fail-fi", "cost_s > 1", "a", "b"});
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().message.find("did you mean '--fail-if'"), std::string::npos) << parsed.error().message;
}

TEST(DiffText, FitsTheTerminal) {
  const Made made;
  for (const int width : {60, 80, 100, 160}) {
    for (const Charset charset : {Charset::ascii, Charset::utf8}) {
      std::istringstream text(render_diff_text(made.report(), {width, charset, false}));
      for (std::string line; std::getline(text, line);) {
        EXPECT_LE(display_width(line), width) << line;
        EXPECT_EQ(line.find('\x1b'), std::string::npos);
      }
    }
  }
}

TEST(DiffText, BeginsWithWhatBecameOfIt) {
  const Made made;
  const std::string text = render_diff_text(made.report(), {100, Charset::utf8, false});
  const auto sentence = text.find("• Better: ");
  ASSERT_NE(sentence, std::string::npos) << text;
  EXPECT_LT(sentence, text.find("\nObjects"));
  EXPECT_NE(text.find("gone: counters"), std::string::npos) << text;
  EXPECT_NE(text.find("waits for conditions"), std::string::npos) << text;
}

TEST(DiffJson, AgreesWithTheComparison) {
  const Made made;
  const DiffReport report = made.report();
  const auto json = nlohmann::json::parse(render_diff_json(report));
  EXPECT_EQ(json["schema"], "crosstalk.diff/1");
  EXPECT_EQ(json["statements"][0]["sentence"], report.comparison.statements[0].sentence);
  EXPECT_EQ(json["objects"].size(), report.comparison.objects.size());
  const auto gone = std::find_if(json["objects"].begin(), json["objects"].end(),
                                 [](const auto& row) { return row["matched"] == "gone"; });
  ASSERT_NE(gone, json["objects"].end());
  EXPECT_EQ((*gone)["before"]["name"], "counters");
  EXPECT_TRUE((*gone)["after"]["name"].is_null());
  EXPECT_EQ((*gone)["after"]["cost_s"], 0.0);
  EXPECT_EQ(json["waits"][0]["class"], "condition");
  EXPECT_EQ(json["waits"][0]["before_s"], 1.25);
  EXPECT_TRUE(json["waits"][0]["after_s"].is_null());
}

TEST(DiffCsv, HasAsManyFieldsInEachRow) {
  const Made made;
  std::istringstream text(render_diff_csv(made.report()));
  std::string line;
  ASSERT_TRUE(std::getline(text, line));
  const auto commas = std::count(line.begin(), line.end(), ',');
  std::size_t rows = 0;
  while (std::getline(text, line)) {
    std::erase_if(line, [quoted = false](char c) mutable {
      quoted = quoted != (c == '"');
      return quoted;
    });
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), commas) << line;
    ++rows;
  }
  EXPECT_GT(rows, 5U);
}

TEST(DiffConditions, SilenceOfABlindMechanismPassesNoGate) {
  Made made;
  const auto status = [&](std::initializer_list<const char*> texts) {
    const auto report = made.report();
    std::vector<JudgedCondition> conditions;
    for (const char* const text : texts) {
      const auto condition = attribution::comparison::parse_condition(text);
      conditions.push_back({*condition, attribution::comparison::judge(*condition, report.comparison)});
    }
    return status_of(conditions);
  };
  EXPECT_EQ(status({}), 0);
  EXPECT_EQ(status({"change(cost_s) > 1000"}), 0);
  EXPECT_EQ(status({"cost_s of object nobody > 0"}), 0) << "nothing of that name";
  made.after.communication = {};
  made.after.sight = {attribution::WatchSight::Sees::nothing, "they do not fire", "", "", false};
  EXPECT_EQ(status({"change(cost_s) > 1000"}), exit_undecided);
  EXPECT_EQ(status({"cost_s of any object > 2 %"}), exit_undecided);
  EXPECT_EQ(status({"cpu_s > 4"}), 0);
  EXPECT_EQ(status({"change(cost_s) > 1000", "cpu_s > 2"}), exit_condition_holds) << "what holds is decided";
  const auto report = made.report();
  const auto condition = attribution::comparison::parse_condition("change(cost_s) > 1000");
  const JudgedCondition judged{*condition, attribution::comparison::judge(*condition, report.comparison)};
  EXPECT_EQ(condition_in_words(judged),
            "undecided: change(cost_s) > 1000 (the recording after could not watch memory: they do not fire)");
}

TEST(DiffConditions, UndetectedCostPassesNoGate) {
  Made made;
  made.after.communication.undetected.at_most_s = 1.5;
  made.after.communication.undetected.why = "the cause";
  const auto condition = attribution::comparison::parse_condition("cost_s > 1.4");
  const auto judged_in = [&](DiffReport& report) -> const JudgedCondition& {
    report.conditions = {{*condition, attribution::comparison::judge(*condition, report.comparison)}};
    return report.conditions.front();
  };
  DiffReport report = made.report();
  EXPECT_EQ(condition_in_words(judged_in(report)),
            "undecided: cost_s > 1.4 (undetected communication of the recording after costs up to 1.5 s (50 % of its "
            "CPU time): the cause)");
  EXPECT_EQ(status_of(report.conditions), exit_undecided);
  report.conditions[0].judgement.record_s = 112.3;
  EXPECT_TRUE(condition_in_words(report.conditions[0]).ends_with("; to decide it, record both for about 120 s"));
  auto json = nlohmann::json::parse(render_diff_json(report))["conditions"][0];
  EXPECT_EQ(json["record_s"], 112.3);
  EXPECT_EQ(json["verdict"], "undecided");
  EXPECT_TRUE(json["holds"].is_null());
  made.after.communication.undetected.at_most_s = 0.1;
  DiffReport small = made.report();
  EXPECT_TRUE(condition_in_words(judged_in(small)).starts_with("does not hold: "));
  EXPECT_EQ(status_of(small.conditions), 0);
  EXPECT_EQ(nlohmann::json::parse(render_diff_json(small))["conditions"][0]["verdict"], "does_not_hold");
}

TEST(DiffConditions, AreSaidInWords) {
  const Made made;
  const auto report = made.report();
  const auto words = [&](const char* text) {
    const auto condition = attribution::comparison::parse_condition(text);
    return condition_in_words({*condition, attribution::comparison::judge(*condition, report.comparison)});
  };
  EXPECT_EQ(words("cpu_s > 2"), "holds: cpu_s > 2 (it is 3 s)");
  EXPECT_EQ(words("cpu_s > 4"), "does not hold: cpu_s > 4 (it is 3 s)");
  EXPECT_TRUE(words("cost_s of object nobody > 0").starts_with("not judged: "));
}

}  // namespace
}  // namespace crosstalk::driver::diff_test
