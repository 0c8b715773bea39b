// SPDX-License-Identifier: Apache-2.0
// `crosstalk report`: reads a profile, analyses it and renders the report.
#include "driver/csv/report.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "attribution/analysis.h"
#include "driver/commands/serve.h"
#include "driver/commands/subcommands.h"
#include "driver/commands/viewing.h"
#include "driver/files/report_machine.h"
#include "driver/json/report.h"
#include "driver/options/report_options.h"
#include "driver/options/source_file.h"
#include "driver/svg/busy.h"
#include "driver/terminal/fetch_progress.h"
#include "driver/terminal/log.h"
#include "driver/terminal/terminal.h"
#include "driver/text/code.h"
#include "driver/text/report.h"
#include "driver/text/source.h"
#include "driver/words/source_notes.h"
#include "models/machine_json.h"
#include "profile/reader.h"

namespace crosstalk::driver {

namespace {

/// Returns the exit status of an error: a bad choice on the command line is refused like a bad option.
int failed(const Error& error) {
  log_error(error.message);
  return error.code == ErrorCode::invalid_argument ? exit_refused : exit_failed;
}

std::string render(const attribution::Analysis& analysis, const attribution::Grouping* groups,
                   const ReportRequest& request) {
  switch (request.format) {
    case Format::json:
      return render_json(analysis, request.view, groups);
    case Format::csv:
      return render_csv(analysis, request.view.value_or(View::summary), groups);
    case Format::svg:
      return render_busy_svg(analysis);
    case Format::text:
      break;
  }
  return render_text(analysis, request.view.value_or(View::summary), groups, style_of_output(request.color));
}

Result<std::string> render_source_of(const attribution::Analysis& analysis, const ReportRequest& request) {
  const SourcePlace place = parse_place(request.place);
  auto notes = source_notes(analysis, place.file);
  if (!notes) {
    return tl::unexpected<Error>(notes.error());
  }
  const auto source = find_source(notes->file, request.sysroot);
  notes->written_later = source && written_after(*source, request.input);
  return render_source(analysis, *notes, read_source(notes->file, request.sysroot), place.line,
                       style_of_output(request.color));
}

attribution::CodeWanted code_wanted(const ReportRequest& request) {
  const SourcePlace place = parse_place(request.place);
  return {place.file, place.line};
}

/// The word behind --view source is a source place, unless it is a profile and no other profile is named.
void settle_place(ReportRequest& request) {
  if (!request.input_named && !request.place.empty() && profile::is_profile(request.place)) {
    request.input = std::exchange(request.place, {});
  }
}

/// Renders the requested report.
Result<std::string> rendered(const attribution::Analysis& analysis, const ReportRequest& request) {
  if (request.view == View::assembly) {
    return render_code(analysis, code_wanted(request), request.sysroot, style_of_output(request.color));
  }
  if (request.view == View::source) {
    return render_source_of(analysis, request);
  }
  if (!request.by) {
    return render(analysis, nullptr, request);
  }
  const auto groups = attribution::group(analysis, *request.by);
  return groups ? Result<std::string>(render(analysis, &*groups, request)) : tl::unexpected<Error>(groups.error());
}

Result<attribution::Analysis> analysed(const profile::ProfileReader& profile, const ReportRequest& request) {
  attribution::AnalysisOptions options;
  options.symbols.sysroot = request.sysroot;
  options.estimator = request.estimator;
  options.start_routines = request.by == attribution::GroupBy::start_routine || request.format == Format::json;
  const ReportMachine machine = machine_of(profile.session());
  options.machine = machine.machine ? &*machine.machine : nullptr;
  options.uncalibrated = machine.missing;
  if (request.view == View::assembly) {
    options.code = code_wanted(request);
  }
  const std::size_t most_rows = options.max_rows;
  if (!request.filter.empty() || request.view == View::source) {
    options.max_rows = SIZE_MAX;  // the requested rows may be beyond the costliest
  }
  const FetchProgress fetching;
  auto analysis = attribution::analyse(profile, options);
  if (analysis && machine.machine) {
    analysis->session.machine = models::to_json(*machine.machine);
  }
  if (analysis && !request.filter.empty()) {
    analysis->memory = {};
    analysis->memory.unknown = "samples of the hardware are not filtered";
  }
  return analysis && !request.filter.empty()
             ? attribution::filtered(std::move(*analysis), request.filter,
                                     request.view == View::source ? SIZE_MAX : most_rows)
             : std::move(analysis);
}

int show_report(ReportRequest& request) {
  settle_place(request);
  start_logging({false, request.verbosity});
  return_freed_blocks();
  const auto profile = profile::ProfileReader::open(request.input);
  if (!profile) {
    return failed(profile.error());
  }
  log_detail("analysing " + request.input + " with the estimator " + request.estimator);
  const auto analysis = analysed(*profile, request);
  if (!analysis) {
    return failed(analysis.error());
  }
  const auto text = rendered(*analysis, request);
  if (!text) {
    return failed(text.error());
  }
  if (!write_output(*text, request.pager && request.format == Format::text)) {
    log_error("standard output cannot be written");
    return exit_failed;
  }
  return exit_ok;
}

}  // namespace

int run_report(const Arguments& arguments) { return serve(parse_report(arguments), show_report); }

}  // namespace crosstalk::driver
