// SPDX-License-Identifier: Apache-2.0
#include "driver/options/diff_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/number.h"
#include "driver/options/named_value.h"

namespace crosstalk::driver {

namespace {

using attribution::comparison::Unit;

constexpr const char* diff_examples =
    "Examples:\n"
    "  crosstalk diff crosstalk.db.old crosstalk.db     the last recording with the one before it\n"
    "  crosstalk diff --format json a.db b.db | jq -r '.statements[0].sentence'\n"
    "  crosstalk diff --fail-if 'change(cost_s) of any object > 2 %' main.db branch.db\n"
    "\n"
    "Conditions: FIGURE [of WHAT] > NUMBER [UNIT]\n"
    "  FIGURE is cost_s, gain_s, count or cpu_s of B, or change(...) of one from A to B; < >= <= are known, too;\n"
    "  WHAT is object NAME or line FILE:LINE, and of cpu_s line FILE:LINE, loop FILE:LINE, function NAME,\n"
    "  thread NAME or region NAME; or any object, any line, ...: the exit status is 2 for a name that is nowhere;\n"
    "  UNIT is % (of CPU time), s, ms, us or ns. A figure that is not known for sure holds only where all of its\n"
    "  95 % interval does.\n"
    "\n"
    "The exit status is 0, 1 when a condition holds, 2 when the profiles cannot be compared, 125 for a\n"
    "bad command line.\n"
    "More: man crosstalk-diff\n";

const std::map<std::string, std::optional<Unit>> units = {
    {"auto", std::nullopt}, {"seconds", Unit::seconds}, {"share", Unit::share}};

struct Texts : ViewTexts {
  std::string unit = "auto", least_cost = "0", run_to_run = "15";
  std::vector<std::string> conditions;
};

void add_options(CLI::App& app, DiffRequest& request, Texts& texts) {
  app.add_option("A", request.before, "Profile before the change")->required();
  app.add_option("B", request.after, "Profile after it")->required();
  app.add_option("--fail-if", texts.conditions, "Exit with 1 if this condition holds, see below; repeatable")
      ->type_name("CONDITION")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--min-cost", texts.least_cost,
                 "Hide rows that cost less in both profiles: 10ms, 1% (of CPU time) [0]")
      ->type_name("COST");
  app.add_option("--unit", texts.unit,
                 "Unit of comparison: seconds, share (of CPU time), auto (by the profiles) [auto]")
      ->type_name("UNIT");
  app.add_option("--run-to-run", texts.run_to_run, "Difference between two runs of one program, % [15]")
      ->type_name("PCT");
  add_format_option(app, texts);
  add_view_options(app, texts, request.sysroot, request.verbosity);
}

/// Parses a non-negative number, with or without a percent sign behind it.
Result<double> parse_run_to_run(const std::string& text) {
  std::string_view sign = text;
  const auto percent = take_leading<double>(sign);
  sign.remove_prefix(std::min(sign.find_first_not_of(' '), sign.size()));
  if (!percent || !(*percent >= 0 && *percent <= 100) || (!sign.empty() && sign != "%")) {
    return fail(ErrorCode::invalid_argument, "--run-to-run: '" + text + "' is no percentage; choose 0 to 100");
  }
  return *percent / 100;
}

Result<void> judge(const Texts& texts, DiffRequest& request) {
  const auto format = named("--format", format_names, texts.format);
  const auto color = named("--color", color_names, texts.color);
  const auto unit = named("--unit", units, texts.unit);
  const auto least_cost = parse_min_cost(texts.least_cost);
  const auto run_to_run = parse_run_to_run(texts.run_to_run);
  if (const auto checked = check_all(format, color, unit, least_cost, run_to_run); !checked) {
    return checked;
  }
  request.format = *format;
  request.color = *color;
  request.comparison.unit = *unit;
  request.least_cost = *least_cost;
  request.comparison.run_to_run = *run_to_run;
  for (const std::string& text : texts.conditions) {
    auto condition = attribution::comparison::parse_condition(text);
    if (!condition) {
      return fail(ErrorCode::invalid_argument, "--fail-if: " + condition.error().message);
    }
    request.conditions.push_back(std::move(*condition));
  }
  if (request.before.empty() || request.after.empty()) {
    return fail(ErrorCode::invalid_argument, "the name of a profile is empty; name the one before and the one after");
  }
  request.pager = !texts.no_pager;
  return {};
}

}  // namespace

Result<Parsed<DiffRequest>> parse_diff(const Arguments& arguments) {
  CLI::App app(
      "Compares two profiles, before and after a change. Names what became better or worse, in which\n"
      "objects, source lines, threads and loops, and how sure that is.\n",
      "crosstalk diff");
  describe(app, "crosstalk diff [OPTION]... A B", diff_examples);
  DiffRequest request;
  Texts texts;
  add_options(app, request, texts);
  return parse_request(app, arguments, request, [&] { return judge(texts, request); });
}

}  // namespace crosstalk::driver
