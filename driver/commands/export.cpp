// SPDX-License-Identifier: Apache-2.0
// `crosstalk export`: writes the call stacks of a profile in the form of other programs.
#include <unistd.h>

#include <string>
#include <utility>

#include "attribution/analysis.h"
#include "driver/commands/serve.h"
#include "driver/commands/subcommands.h"
#include "driver/commands/viewing.h"
#include "driver/export/collapsed.h"
#include "driver/export/columns.h"
#include "driver/export/gzip.h"
#include "driver/export/pprof.h"
#include "driver/files/result_file.h"
#include "driver/options/export_options.h"
#include "driver/terminal/fetch_progress.h"
#include "driver/terminal/log.h"
#include "driver/terminal/terminal.h"
#include "profile/reader.h"

namespace crosstalk::driver {
namespace {

Result<attribution::Analysis> analysed(const ExportRequest& request) {
  const auto profile = profile::ProfileReader::open(request.input);
  if (!profile) {
    return tl::unexpected<Error>(profile.error());
  }
  attribution::AnalysisOptions options;
  options.symbols.sysroot = request.sysroot;
  options.stacks = attribution::StacksWanted{request.lend};
  const FetchProgress fetching;
  return attribution::analyse(*profile, options);
}

/// Says that the export is empty, and why.
void warn_of_nothing(const attribution::Analysis& analysis, const ExportRequest& request) {
  const bool of_time = request.format == ExportFormat::pprof || request.value == StackValue::cpu;
  if (of_time && analysis.sampling.samples == 0) {
    log_warning(request.input + " has no samples, so the export has none; crosstalk report says why");
  } else if (!of_time &&
             (request.value == StackValue::gain ? !has_gain(*analysis.stacks) : !has_communication(*analysis.stacks))) {
    log_warning(request.input + " has no known " +
                (request.value == StackValue::gain ? "gain" : "cost of communication") +
                ", so the export is empty; crosstalk report says why");
  }
}

Result<std::string> rendered(const attribution::Analysis& analysis, const ExportRequest& request) {
  return request.format == ExportFormat::pprof
             ? gzip(encode_pprof(analysis))
             : Result<std::string>(render_collapsed(analysis, {request.value, request.by_thread}));
}

Result<void> write(const std::string& bytes, const ExportRequest& request) {
  if (request.output != "-") {
    return write_result(request.output, bytes);
  }
  return write_output(bytes, false) ? Result<void>() : fail(ErrorCode::system, "standard output cannot be written");
}

int export_profile(const ExportRequest& request) {
  start_logging({false, request.verbosity});
  return_freed_blocks();
  if (request.format == ExportFormat::pprof && request.output == "-" && ::isatty(STDOUT_FILENO) == 1) {
    log_error("standard output is a terminal, and a file for pprof is no text; name a file, as -o run.pb.gz");
    return exit_refused;
  }
  const auto analysis = analysed(request);
  const auto bytes = analysis ? rendered(*analysis, request) : tl::unexpected<Error>(analysis.error());
  const auto written = bytes ? write(*bytes, request) : tl::unexpected<Error>(bytes.error());
  if (!written) {
    log_error(written.error().message);
    return exit_failed;
  }
  warn_of_nothing(*analysis, request);
  return exit_ok;
}

}  // namespace

int run_export(const Arguments& arguments) { return serve(parse_export(arguments), export_profile); }

}  // namespace crosstalk::driver
