// SPDX-License-Identifier: Apache-2.0
// `crosstalk import`: makes a profile of a perf recording.
#include "collectors/perf_import/import.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <utility>

#include "driver/commands/serve.h"
#include "driver/commands/subcommands.h"
#include "driver/files/output_file.h"
#include "driver/options/import_options.h"
#include "driver/terminal/log.h"

namespace crosstalk::driver {

namespace {

constexpr const char* import_examples =
    "Examples:\n"
    "  perf record -d -g ./program && crosstalk import perf.data && crosstalk report\n"
    "  perf mem record ./program && crosstalk import perf.data -o memory.db\n"
    "\n"
    "perf watches no lines of memory, so the profile does not tell which threads communicate. Where samples have\n"
    "data sources and latencies (perf mem, perf c2c), crosstalk report --view memory shows them, with shared lines.\n"
    "The exit status is 0, 1 when the file cannot be imported, 125 for a bad command line.\n"
    "More: man crosstalk-import\n";

std::string counted(std::uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

int import_failed(const Error& error) {
  log_error(error.message);
  return exit_failed;
}

}  // namespace

Result<Parsed<ImportRequest>> parse_import(const Arguments& arguments) {
  CLI::App app("Makes a profile of a recording that perf has written, of any machine.\n", "crosstalk import");
  describe(app, "crosstalk import [OPTION]... FILE", import_examples);
  ImportRequest request;
  app.add_option("FILE", request.input, "What perf has written, perf.data mostly")->required();
  app.add_option("-o,--output", request.output, "Profile to write; %p %h %t are expanded [crosstalk.db]")
      ->type_name("FILE");
  app.add_flag("-q,--quiet", request.quiet, "Print only errors");
  app.add_flag("-v,--verbose", request.verbosity, "Print progress details on standard error")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return parse_request(app, arguments, request, [&] {
    return request.input.empty() || request.output.empty()
               ? fail(ErrorCode::invalid_argument,
                      "the name of a file is empty; name the recording, and the profile with -o")
               : Result<void>();
  });
}

namespace {

int import_recording(const ImportRequest& request) {
  start_logging({request.quiet, request.verbosity});
  const Result<std::string> output = expand_name(request.output, name_facts());
  if (!output) {
    log_error(output.error().message);
    return exit_refused;
  }
  const auto outcome = perf_import::import_perf_data(request.input, *output, CROSSTALK_VERSION);
  if (!outcome) {
    return import_failed(outcome.error());
  }
  for (const std::string& note : outcome->notes) {
    log_warning(note);
  }
  const std::string file = *output == "crosstalk.db" ? "" : " " + shell_quoted(*output);
  log_notice(counted(outcome->samples, "sample") + " of " + counted(outcome->threads, "thread") +
             " imported; 'crosstalk report" + file + "' shows them");
  return exit_ok;
}

}  // namespace

int run_import(const Arguments& arguments) { return serve(parse_import(arguments), import_recording); }

}  // namespace crosstalk::driver
