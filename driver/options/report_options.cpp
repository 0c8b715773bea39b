// SPDX-License-Identifier: Apache-2.0
#include "driver/options/report_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "attribution/estimate/estimator.h"
#include "driver/options/named_value.h"
#include "driver/options/source_file.h"

namespace crosstalk::driver {

namespace {

constexpr const char* report_examples =
    "Examples:\n"
    "  crosstalk report                        the summary\n"
    "  crosstalk report --view objects run.db  variables, and which thread touches which bytes\n"
    "  crosstalk report --format json | jq '.communication.cells'\n"
    "  crosstalk report --view matrix --by core --format csv > cores.csv\n"
    "  crosstalk report --view memory           load latencies, data sources and shared lines, by a PMU's samples\n"
    "  crosstalk report --view source counters.cpp:41   cost of the lines around this one\n"
    "  crosstalk report --view asm bump         cost of a function's instructions\n"
    "  crosstalk report --format svg > busy.svg   a picture of how busy loops keep the machine's units\n"
    "  crosstalk report --thread 'worker*' --min-cost 1%   costs of at least 1 % in these threads\n"
    "  crosstalk report --view threads --by name   groups of threads whose names differ in a number only\n"
    "\n"
    "The exit status is 0, 1 when the profile cannot be read, 125 for a bad command line.\n"
    "More: man crosstalk-report\n";

const std::map<std::string, View> views = {
    {"summary", View::summary}, {"matrix", View::matrix}, {"lines", View::lines},    {"objects", View::objects},
    {"loops", View::loops},     {"busy", View::busy},     {"memory", View::memory},  {"threads", View::threads},
    {"source", View::source},   {"asm", View::assembly},  {"regions", View::regions}};
const std::map<std::string, Format> formats = {
    {"csv", Format::csv}, {"json", Format::json}, {"svg", Format::svg}, {"text", Format::text}};
using attribution::GroupBy;
const std::map<std::string, std::optional<GroupBy>> bys = {
    {"thread", std::nullopt},      {"name", GroupBy::name},
    {"process", GroupBy::process}, {"start-routine", GroupBy::start_routine},
    {"core", GroupBy::core},       {"socket", GroupBy::socket}};
struct ReportTexts : ViewTexts {
  std::string view, by = "thread", input, positional, min_cost;
  bool has_input = false, has_positional = false;  // the options are given, empty or not
};

/// Returns the examples, then one line for each estimator.
std::string footer() {
  std::string text = std::string(report_examples) + "\nEstimators (automatic uses the first):\n";
  constexpr std::size_t column = 18;
  for (const attribution::Estimator& estimator : attribution::estimators()) {
    std::string name = "  " + std::string(estimator.name);
    name.resize(std::max(column, name.size() + 1), ' ');
    text += name + std::string(estimator.summary) + "\n";
  }
  return text;
}

void add_options(CLI::App& app, ReportRequest& request, ReportTexts& texts) {
  app.add_option("-i,--input", texts.input, "Profile to read [crosstalk.db]")->type_name("FILE");
  app.add_option("FILE", texts.positional, "Profile to read, like -i");
  app.add_option("--view", texts.view,
                 "Part to show: summary, matrix, lines, objects, loops, busy, memory, threads, regions, source "
                 "[FILE[:LINE]], asm "
                 "[FILE[:LINE]|FUNCTION] [summary]")
      ->type_name("VIEW");
  app.add_option("--by", texts.by,
                 "Group the matrix and the threads by thread, name, process, start-routine, core, socket [thread]")
      ->type_name("WHAT");
  app.add_option("--thread", request.filter.thread,
                 "Show only communication and time of this thread: index, name or pattern")
      ->type_name("T");
  app.add_option("--object", request.filter.object, "Show only this variable or block: name or pattern")
      ->type_name("O");
  app.add_option("--module", request.filter.module, "Show only code of this program file or library: name or pattern")
      ->type_name("M");
  app.add_option("--min-cost", texts.min_cost,
                 "Show only rows that cost at least this: 0.5s, 20ms, or 5% of all CPU time")
      ->type_name("X");
  add_format_option(app, texts, "text, json, csv, svg (a picture, of --view busy)");
  app.add_option("--estimator", request.estimator, "Method of estimation, see below [automatic]")->type_name("NAME");
  add_view_options(app, texts, request.sysroot, request.verbosity);
}

/// Checks the filter options. Rejects a choice that the profile cannot tell apart instead of showing everything.
Result<void> judge_filter(const ReportTexts& texts, ReportRequest& request) {
  if (!texts.min_cost.empty()) {
    auto least = parse_min_cost(texts.min_cost);
    if (!least) {
      return tl::unexpected<Error>(least.error());
    }
    request.filter.min_cost = std::move(*least);
  }
  if (request.view == View::assembly && !request.filter.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--view asm: figures by instruction are of all threads and objects; leave --thread, --object, --module "
                "and --min-cost out");
  }
  if (request.view == View::memory && !request.filter.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--view memory: its figures are of all samples of the hardware; leave --thread, --object, --module and "
                "--min-cost out");
  }
  const bool by_processor = request.by == GroupBy::core || request.by == GroupBy::socket;
  if (by_processor && request.filter.restricts_code()) {
    return fail(ErrorCode::invalid_argument, "--by " + texts.by +
                                                 ": what passes between processors is not known by thread, object or "
                                                 "module; leave --thread, --object and --module out");
  }
  return {};
}

bool shows_code(std::string_view view) { return view == "source" || view == "asm"; }

/// Removes the argument right behind "--view source" or "--view asm" from `arguments`, unless it is an option, and
/// returns it: the place to show.
std::string take_place(Arguments& arguments) {
  for (auto argument = arguments.begin(); argument != arguments.end() && *argument != "--"; ++argument) {
    const bool apart = *argument == "--view" && argument + 1 != arguments.end() && shows_code(*(argument + 1));
    const auto place = argument + (apart ? 2 : 1);
    constexpr std::string_view assigned = "--view=";
    const bool with_place = apart || (argument->starts_with(assigned) && shows_code(argument->substr(assigned.size())));
    if (with_place && place < arguments.end() && !place->starts_with("-")) {
      std::string taken = *place;
      arguments.erase(place);
      return taken;
    }
  }
  return {};
}

/// Rejects empty values: an unset shell variable leaves one, and reading it as "all" would hide the mistake.
Result<void> judge_given(const CLI::App& app) {
  for (const char* const option : {"--view", "--by", "--thread", "--object", "--module", "--min-cost"}) {
    if (app.count(option) > 0 && app.get_option(option)->as<std::string>().empty()) {
      return fail(ErrorCode::invalid_argument,
                  std::string(option) + ": the value is empty; name one, or leave the option out");
    }
  }
  return {};
}

/// Checks that a number behind the colon is a line number, from 1.
Result<void> judge_place(const std::string& view, const std::string& place) {
  const std::size_t colon = place.rfind(':');
  if (colon == std::string::npos || colon + 1 == place.size() ||
      place.find_first_not_of("0123456789", colon + 1) != std::string::npos || parse_place(place).line != 0) {
    return {};
  }
  return fail(ErrorCode::invalid_argument, "--view " + view + " " + place + ": there is no line " +
                                               place.substr(colon + 1) + "; lines are numbered from 1");
}

Result<void> judge(const ReportTexts& texts, ReportRequest& request) {
  const auto by = named("--by", bys, texts.by);
  const auto format = named("--format", formats, texts.format);
  const auto color = named("--color", color_names, texts.color);
  const auto view = texts.view.empty() ? Result<View>(View::summary) : named("--view", views, texts.view);
  if (const auto checked = check_all(by, format, color, view); !checked) {
    return checked;
  }
  request.by = *by;
  request.format = *format;
  request.color = *color;
  if (!texts.view.empty()) {
    request.view = *view;
  }
  if (texts.has_input && texts.has_positional) {
    return fail(ErrorCode::invalid_argument,
                "two profiles are named, '" + texts.input + "' and '" + texts.positional + "'; name one");
  }
  request.input_named = texts.has_input || texts.has_positional;
  if (request.input_named) {
    request.input = texts.has_input ? texts.input : texts.positional;
  }
  if (request.input.empty()) {
    return fail(ErrorCode::invalid_argument,
                "the name of the profile is empty; name a file, or leave it out for crosstalk.db");
  }
  if (shows_code(texts.view) && request.format != Format::text) {
    return fail(ErrorCode::invalid_argument,
                "--view " + texts.view + " is text for people; --view lines has figures by line as " + texts.format);
  }
  if (request.format == Format::svg && request.view.value_or(View::busy) != View::busy) {
    return fail(ErrorCode::invalid_argument,
                "--format svg: there is no picture of --view " + texts.view + "; there is one of --view busy");
  }
  request.pager = !texts.no_pager;
  if (auto judged = judge_place(texts.view, request.place); !judged) {
    return judged;
  }
  return judge_filter(texts, request);
}

}  // namespace

Result<Parsed<ReportRequest>> parse_report(const Arguments& arguments) {
  CLI::App app(
      "Shows a profile: which threads communicate, through which source lines and variables, at\n"
      "what cost, and where the time goes.\n",
      "crosstalk report");
  describe(app, "crosstalk report [OPTION]... [[-i] FILE]", footer());
  ReportRequest request;
  ReportTexts texts;
  add_options(app, request, texts);
  Arguments others = arguments;
  request.place = take_place(others);
  return parse_request(app, others, request, [&]() -> Result<void> {
    texts.has_input = app.count("--input") > 0;
    texts.has_positional = app.count("FILE") > 0;
    const auto given = judge_given(app);
    return given ? judge(texts, request) : given;
  });
}

}  // namespace crosstalk::driver
