// SPDX-License-Identifier: Apache-2.0
// `crosstalk diff`: reads two profiles, compares them, and renders the comparison.

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "attribution/analysis.h"
#include "attribution/comparison/comparable.h"
#include "attribution/comparison/compare.h"
#include "attribution/program/program_names.h"
#include "driver/commands/serve.h"
#include "driver/commands/subcommands.h"
#include "driver/commands/viewing.h"
#include "driver/comparison/report.h"
#include "driver/options/diff_options.h"
#include "driver/terminal/log.h"
#include "driver/terminal/terminal.h"
#include "profile/reader.h"

namespace crosstalk::driver {

namespace {

using attribution::Analysis;
using attribution::comparison::Comparison;

constexpr int exit_not_compared = exit_undecided;  // as diff(1) and cmp(1) have it

Result<Analysis> read(const std::string& name, const DiffRequest& request) {
  const auto profile = profile::ProfileReader::open(name);
  if (!profile) {
    return tl::unexpected<Error>(profile.error());
  }
  log_detail("analysing " + name);
  attribution::AnalysisOptions options;
  options.symbols.sysroot = request.sysroot;
  options.max_rows = 1000;  // rows that only one profile cuts off would count as gone or new
  return attribution::analyse(*profile, options);
}

/// Leaves rows out that cost too little in both profiles.
void leave_out(const attribution::MinCost& least, Comparison& comparison) {
  const auto enough = [&](const attribution::comparison::Figure& cost, double cpu_s) {
    return cost.value.value_or(0) >= (least.of_cpu ? least.value * cpu_s : least.value);
  };
  const auto cheap = [&](const auto& before, const auto& after) {
    return !enough(before, comparison.before_cpu_s) && !enough(after, comparison.after_cpu_s);
  };
  for (auto* rows : {&comparison.objects, &comparison.lines, &comparison.threads}) {
    std::erase_if(*rows, [&](const auto& row) { return cheap(row.before.cost, row.after.cost); });
  }
  std::erase_if(comparison.loops, [&](const auto& loop) { return cheap(loop.before.cpu_s, loop.after.cpu_s); });
}

std::string render(const DiffReport& report, const DiffRequest& request) {
  switch (request.format) {
    case Format::json:
      return render_diff_json(report);
    case Format::csv:
      return render_diff_csv(report);
    case Format::text:
    case Format::svg:  // this command line does not know it
      break;
  }
  return render_diff_text(report, style_of_output(request.color));
}

/// Prints to standard error, so that a script's failure is visible wherever the report goes.
void say_conditions(const DiffReport& report) {
  for (const JudgedCondition& judged : report.conditions) {
    if (judged.judgement.holds) {
      log_error(condition_in_words(judged));
    } else if (!judged.judgement.judged) {
      log_warning(condition_in_words(judged));
    }
  }
}

int diff_failed(const Error& error) {
  log_error(error.message);
  return exit_not_compared;
}

int compare_profiles(const DiffRequest& request) {
  start_logging({false, request.verbosity});
  return_freed_blocks();
  const auto before = read(request.before, request);
  if (!before) {
    return diff_failed(before.error());
  }
  const auto after = read(request.after, request);
  if (!after) {
    return diff_failed(after.error());
  }
  DiffReport report{request.before,
                    request.after,
                    &*before,
                    &*after,
                    attribution::comparison::compare(*before, *after, request.comparison),
                    {}};
  if (!report.comparison.in_common) {
    log_error(request.before + " and " + request.after + " have nothing in common: no source file, object or loop of " +
              attribution::program_of(before->session.command) + " is in " +
              attribution::program_of(after->session.command));
    return exit_not_compared;
  }
  for (const auto& condition : request.conditions) {
    auto judgement = attribution::comparison::judge(condition, report.comparison);
    const auto named = attribution::comparison::check_name(condition, report.comparison);
    if (!named && judgement.blind.empty()) {
      log_error("--fail-if " + named.error().message);
      return exit_not_compared;
    }
    report.conditions.push_back({condition, std::move(judgement)});
  }
  leave_out(request.least_cost, report.comparison);
  if (!write_output(render(report, request), request.pager && request.format == Format::text)) {
    log_error("standard output cannot be written");
    return exit_not_compared;
  }
  say_conditions(report);
  return status_of(report.conditions);
}

}  // namespace

int status_of(const std::vector<JudgedCondition>& conditions) {
  bool undecided = false;
  for (const JudgedCondition& judged : conditions) {
    if (judged.judgement.holds) {
      return exit_condition_holds;
    }
    undecided = undecided || !judged.judgement.blind.empty();
  }
  return undecided ? exit_undecided : exit_ok;
}

int run_diff(const Arguments& arguments) { return serve(parse_diff(arguments), compare_profiles); }

}  // namespace crosstalk::driver
