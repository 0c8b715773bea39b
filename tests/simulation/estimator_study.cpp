// SPDX-License-Identifier: Apache-2.0
// estimator_study [RUNS [SCENARIO...]]: judges all estimators, prints one JSON object a scenario and line. The
// scenarios called "counting" are all those whose samples count, "timing" all others, "probing" those whose lines are
// probed, "published" those of the published study, which are judged only if they are named.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/published.h"
#include "tests/simulation/study.h"

namespace {

using crosstalk::simulation::ProbedProgram;
using crosstalk::simulation::Scenario;
using crosstalk::simulation::Score;

template <class Simulated>
nlohmann::ordered_json json(const Simulated& scenario, const std::vector<Score>& scores) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Score& score : scores) {
    list.push_back({{"estimator", score.estimator->name},
                    {"bias", score.bias},
                    {"bias_error", score.bias_error},
                    {"median_error", score.median_error},
                    {"misplaced", score.misplaced},
                    {"coverage", score.coverage},
                    {"cells", score.cells},
                    {"width", score.width},
                    {"total_coverage", score.total_coverage},
                    {"detections", score.detections},
                    {"estimated_s", score.estimated_s},
                    {"true_s", score.true_s}});
  }
  const Score& any = scores.front();
  return {{"scenario", scenario.name}, {"summary", scenario.summary}, {"runs", any.runs},
          {"counts", any.counts},      {"withheld", any.withheld},    {"scores", list}};
}

bool is_chosen(std::string_view name, std::string_view kind, const std::vector<std::string>& names) {
  const auto named = [&](std::string_view one) { return std::find(names.begin(), names.end(), one) != names.end(); };
  return names.empty() || named(name) || named(kind);
}

/// The others are variants of these.
std::vector<crosstalk::attribution::Estimator> default_and_published() {
  return {**crosstalk::attribution::find_estimator("post_stratified"),
          **crosstalk::attribution::find_estimator("board")};
}

std::string_view kind_of(const Scenario& scenario) {
  return scenario.observer.source != crosstalk::simulation::Source::clock ? "counting" : "timing";
}

}  // namespace

int main(int count, char** arguments) {
  constexpr std::uint32_t default_runs = 200;
  const std::vector<std::string> names(arguments + std::min(count, 2), arguments + count);
  const std::uint32_t runs =
      count > 1 ? static_cast<std::uint32_t>(std::strtoul(arguments[1], nullptr, 10)) : default_runs;
  for (const Scenario& scenario : crosstalk::simulation::scenarios()) {
    if (is_chosen(scenario.name, kind_of(scenario), names)) {
      std::cout << json(scenario, judge(scenario, crosstalk::attribution::estimators(), runs)).dump() << std::endl;
    }
  }
  for (const Scenario& scenario : crosstalk::simulation::published_scenarios()) {
    if (!names.empty() && is_chosen(scenario.name, "published", names)) {
      std::cout << json(scenario, judge(scenario, default_and_published(), runs)).dump() << std::endl;
    }
  }
  for (const ProbedProgram& program : crosstalk::simulation::probed_programs()) {
    if (is_chosen(program.name, "probing", names)) {
      auto result = json(program, {judge(program, runs)});
      result["probed"] = true;
      std::cout << result.dump() << std::endl;
    }
  }
  return 0;
}
