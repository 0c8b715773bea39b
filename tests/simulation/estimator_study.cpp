// SPDX-License-Identifier: Apache-2.0
// estimator_study [RUNS [SCENARIO...]]: judges all estimators, prints one JSON object a scenario and line.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/simulation/study.h"

namespace {

using crosstalk::simulation::Scenario;
using crosstalk::simulation::Score;

nlohmann::ordered_json json(const Scenario& scenario, const std::vector<Score>& scores) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Score& score : scores) {
    list.push_back({{"estimator", score.estimator->name},
                    {"bias", score.bias},
                    {"bias_error", score.bias_error},
                    {"misplaced", score.misplaced},
                    {"coverage", score.coverage},
                    {"cells", score.cells},
                    {"width", score.width},
                    {"total_coverage", score.total_coverage},
                    {"detections", score.detections},
                    {"estimated_s", score.estimated_s},
                    {"true_s", score.true_s}});
  }
  return {{"scenario", scenario.name}, {"summary", scenario.summary}, {"runs", scores.front().runs}, {"scores", list}};
}

}  // namespace

int main(int count, char** arguments) {
  constexpr std::uint32_t default_runs = 200;
  const std::vector<std::string> names(arguments + std::min(count, 2), arguments + count);
  const std::uint32_t runs =
      count > 1 ? static_cast<std::uint32_t>(std::strtoul(arguments[1], nullptr, 10)) : default_runs;
  for (const Scenario& scenario : crosstalk::simulation::scenarios()) {
    if (names.empty() || std::find(names.begin(), names.end(), scenario.name) != names.end()) {
      std::cout << json(scenario, judge(scenario, crosstalk::attribution::estimators(), runs)).dump() << std::endl;
    }
  }
  return 0;
}
