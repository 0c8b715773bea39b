// SPDX-License-Identifier: Apache-2.0
// A comparison in the forms that `crosstalk diff` prints.
#pragma once

#include <string>
#include <vector>

#include "attribution/comparison/comparison.h"
#include "attribution/comparison/condition.h"
#include "driver/terminal/canvas.h"

namespace crosstalk::driver {

struct JudgedCondition {
  attribution::comparison::Condition condition;
  attribution::comparison::Judgement judgement;
};
inline constexpr int exit_condition_holds = 1;
/// No condition holds, and at least one could not be judged: a gate must not pass because the data is missing.
inline constexpr int exit_undecided = 2;
[[nodiscard]] int status_of(const std::vector<JudgedCondition>& conditions);

/// Everything that the report shows. The analyses must outlive it.
struct DiffReport {
  std::string before_file, after_file;
  const attribution::Analysis* before = nullptr;
  const attribution::Analysis* after = nullptr;
  attribution::comparison::Comparison comparison;
  std::vector<JudgedCondition> conditions;
};

/// Renders text for people. Equal reports give equal text.
[[nodiscard]] std::string render_diff_text(const DiffReport& report, TextStyle style);
/// Renders the interface "crosstalk.diff/1" of docs/diff-json.md, with a newline at its end.
[[nodiscard]] std::string render_diff_json(const DiffReport& report);
/// Renders one table with a row for each row of the comparison.
[[nodiscard]] std::string render_diff_csv(const DiffReport& report);

/// "gone", "new", "both".
[[nodiscard]] const char* matched_name(attribution::comparison::Matched matched);
/// "holds: ..." in a line for people.
[[nodiscard]] std::string condition_in_words(const JudgedCondition& judged);

}  // namespace crosstalk::driver
