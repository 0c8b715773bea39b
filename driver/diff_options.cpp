// SPDX-License-Identifier: Apache-2.0
#include "driver/diff_options.h"

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

namespace crosstalk::driver {

namespace {

using attribution::comparison::Unit;

constexpr const char* examples =
    "Examples:\n"
    "  crosstalk diff crosstalk.db.old crosstalk.db     the last recording with the one before it\n"
    "  crosstalk diff --format json a.db b.db | jq -r '.statements[0].sentence'\n"
    "  crosstalk diff --fail-if 'change(cost_s) of any object > 2 %' main.db branch.db\n"
    "\n"
    "Conditions: FIGURE [of object NAME | of line FILE:LINE | of any object | of any line] > NUMBER [UNIT]\n"
    "  FIGURE is cost_s, gain_s, count or cpu_s of B, or change(...) of one from A to B; < >= <= are known, too;\n"
    "  UNIT is % (of CPU time), s, ms, us or ns. A figure that is not known for sure holds only where all of its\n"
    "  95 % interval does.\n"
    "\n"
    "The exit status is 0, 1 when a condition holds, 2 when the profiles can not be compared, 125 for a\n"
    "bad command line.\n"
    "More: man crosstalk-diff\n";

const std::map<std::string, Format> formats = {{"text", Format::text}, {"json", Format::json}, {"csv", Format::csv}};
const std::map<std::string, ColorChoice> colors = {
    {"auto", ColorChoice::automatic}, {"always", ColorChoice::always}, {"never", ColorChoice::never}};
const std::map<std::string, std::optional<Unit>> units = {
    {"auto", std::nullopt}, {"seconds", Unit::seconds}, {"share", Unit::share}};

struct Texts {
  std::string format = "text", color = "auto", unit = "auto", least_cost = "0", run_to_run = "15";
  std::vector<std::string> conditions;
  bool no_pager = false;
};

void add_options(CLI::App& app, DiffRequest& request, Texts& texts) {
  app.add_option("A", request.before, "Profile before the change")->required();
  app.add_option("B", request.after, "Profile after it")->required();
  app.add_option("--fail-if", texts.conditions, "Exit with 1 when this holds, see below; may be given again")
      ->type_name("CONDITION")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--min-cost", texts.least_cost, "Leave out rows that cost less in both: 10ms, 1% (of CPU time) [0]")
      ->type_name("COST");
  app.add_option("--unit", texts.unit, "Compare: seconds, share (of CPU time), auto: as the profiles allow [auto]")
      ->type_name("UNIT");
  app.add_option("--run-to-run", texts.run_to_run, "Percent by which runs of one program differ anyway [15]")
      ->type_name("PCT");
  app.add_option("--format", texts.format, "Form: text, json, csv [text]")->type_name("FORMAT");
  app.add_option("--sysroot", request.sysroot, "Look for program files and debug files under this directory first")
      ->type_name("DIR");
  app.add_flag("--no-pager", texts.no_pager, "Do not page text on a terminal");
  app.add_option("--color", texts.color, "Colours: auto, always, never [auto]")->type_name("WHEN");
  app.add_flag("-v,--verbose", request.verbosity, "Say what is done, on standard error")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

template <class Value>
Result<void> choose(const char* option, const std::map<std::string, Value>& names, const std::string& name,
                    Value& into) {
  if (const auto found = names.find(name); found != names.end()) {
    into = found->second;
    return {};
  }
  std::string known;
  for (const auto& [candidate, value] : names) {
    known += (known.empty() ? "" : ", ") + candidate;
  }
  return fail(ErrorCode::invalid_argument,
              std::string(option) + ": there is no '" + name + "'; choose one of: " + known);
}

/// A number that is not negative, and what follows it but for spaces between.
std::optional<std::pair<double, std::string_view>> number_and_unit(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value < 0) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (text.starts_with(' ')) {
    text.remove_prefix(1);
  }
  return std::pair{value, text};
}

Result<LeastCost> parse_least_cost(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 5> names = {
      {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"%", 0.01}}};
  if (const auto read = number_and_unit(text)) {
    for (const auto& [name, factor] : names) {
      if (read->second == name) {
        return LeastCost{read->first * factor, name == "%"};
      }
    }
  }
  return fail(ErrorCode::invalid_argument,
              "--min-cost: '" + text + "' is no cost; write a number of seconds (0.1, 100ms) or of percent (1%)");
}

Result<double> parse_run_to_run(const std::string& text) {
  const auto read = number_and_unit(text);
  if (!read || (!read->second.empty() && read->second != "%") || read->first > 100) {
    return fail(ErrorCode::invalid_argument, "--run-to-run: '" + text + "' is no percentage; choose 0 to 100");
  }
  return read->first / 100;
}

Result<void> judge(const Texts& texts, DiffRequest& request) {
  for (const auto& chosen : {choose("--format", formats, texts.format, request.format),
                             choose("--color", colors, texts.color, request.color),
                             choose("--unit", units, texts.unit, request.comparison.unit)}) {
    if (!chosen) {
      return chosen;
    }
  }
  const auto least_cost = parse_least_cost(texts.least_cost);
  const auto run_to_run = parse_run_to_run(texts.run_to_run);
  if (!least_cost || !run_to_run) {
    return tl::unexpected<Error>(least_cost ? run_to_run.error() : least_cost.error());
  }
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
      "Compares two profiles, before and after a change: what became better or worse, in which\n"
      "objects, source lines, threads and loops, and how sure that is.\n",
      "crosstalk diff");
  describe(app, "crosstalk diff [OPTION]... A B", examples);
  DiffRequest request;
  Texts texts;
  add_options(app, request, texts);
  const auto outcome = parse(app, arguments);
  if (!outcome) {
    return tl::unexpected<Error>(outcome.error());
  }
  if (outcome->help) {
    return Parsed<DiffRequest>{std::nullopt, outcome->text};
  }
  if (auto judged = judge(texts, request); !judged) {
    return tl::unexpected<Error>(judged.error());
  }
  return Parsed<DiffRequest>{std::move(request), ""};
}

}  // namespace crosstalk::driver
