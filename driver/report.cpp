// SPDX-License-Identifier: Apache-2.0
// `crosstalk report`: a profile is read, analysed and drawn.
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "attribution/analysis.h"
#include "driver/csv_report.h"
#include "driver/json_report.h"
#include "driver/log.h"
#include "driver/report_options.h"
#include "driver/subcommands.h"
#include "driver/terminal.h"
#include "driver/text_report.h"
#include "profile/reader.h"

namespace crosstalk::driver {

namespace {

/// A bad choice on the command line is refused like a bad option; anything else is a report that failed.
int failed(const Error& error) {
  log_error(error.message);
  return error.code == ErrorCode::invalid_argument ? exit_refused : exit_failed;
}

bool colors(ColorChoice choice) {
  return choice == ColorChoice::always || (choice == ColorChoice::automatic && wants_color(STDOUT_FILENO));
}

std::string render(const attribution::Analysis& analysis, const ReportRequest& request) {
  switch (request.format) {
    case Format::json:
      return render_json(analysis, request.view);
    case Format::csv:
      return render_csv(analysis, request.view.value_or(View::summary), request.by);
    case Format::text:
      break;
  }
  const TextStyle style{terminal_width(STDOUT_FILENO), locale_charset(), colors(request.color)};
  return render_text(analysis, request.view.value_or(View::summary), request.by, style);
}

}  // namespace

int run_report(const Arguments& arguments) {
  const auto parsed = parse_report(arguments);
  if (!parsed) {
    return failed(parsed.error());
  }
  if (!parsed->request) {
    std::fputs(parsed->text.c_str(), stdout);
    return exit_ok;
  }
  const ReportRequest& request = *parsed->request;
  start_logging({false, request.verbosity});
  // The large vectors of a large profile go back to the system when they are freed. As glibc would have it, blocks of
  // up to 32 MiB are kept once some of that size have been freed, between small ones that are still in use.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  const auto profile = profile::ProfileReader::open(request.input);
  if (!profile) {
    return failed(profile.error());
  }
  log_detail("analysing " + request.input + " with the estimator " + request.estimator);
  attribution::AnalysisOptions options;
  options.symbols.sysroot = request.sysroot;
  options.estimator = request.estimator;
  const auto analysis = attribution::analyse(*profile, options);
  if (!analysis) {
    return failed(analysis.error());
  }
  if (!write_output(render(*analysis, request), request.pager && request.format == Format::text)) {
    log_error("standard output can not be written");
    return exit_failed;
  }
  return exit_ok;
}

}  // namespace crosstalk::driver
