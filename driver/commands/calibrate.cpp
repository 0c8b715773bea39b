// SPDX-License-Identifier: Apache-2.0
// `crosstalk calibrate`: measures what this machine can do, shows it, and keeps it for profiles and reports.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <string>

#include "collectors/calibration/calibration.h"
#include "collectors/calibration/machine_description.h"
#include "driver/commands/serve.h"
#include "driver/commands/subcommands.h"
#include "driver/commands/viewing.h"
#include "driver/files/cost_file.h"
#include "driver/files/machine_file.h"
#include "driver/files/output_file.h"
#include "driver/options/calibrate_options.h"
#include "driver/terminal/log.h"
#include "driver/terminal/progress_line.h"
#include "driver/terminal/terminal.h"
#include "models/machine_json.h"

namespace crosstalk::driver {

namespace {

constexpr const char* calibrate_examples =
    "Examples:\n"
    "  crosstalk calibrate\n"
    "  crosstalk calibrate --json | jq '.bandwidths[] | select(.level == \"memory\")'\n"
    "\n"
    "It takes some seconds, two minutes at most, and all processors. It leaves out\n"
    "what other programs keep it from measuring; the table shows each gap with its reason.\n"
    "The exit status is 0, 1 when the machine cannot be measured, 125 for a bad command line.\n"
    "More: man crosstalk-calibrate\n";

int failed(const Error& error, int status) {
  log_error(error.message);
  return status;
}

/// Returns the output path. Fails at once if it cannot be written, because a calibration takes two minutes.
Result<std::string> writable_output(const CalibrateRequest& request) {
  auto path = request.output.empty() ? machine_file_path() : Result<std::string>(request.output);
  if (!path) {
    return path;
  }
  if (const auto writable = check_writable(*path); !writable) {
    return tl::unexpected<Error>(writable.error());
  }
  return path;
}

/// The file's figures if they are this machine's, from an older crosstalk that did not measure all, and from as many
/// tries as are wanted. Then only the others are measured.
std::optional<models::Machine> known_figures(const CalibrateRequest& request, const std::string& path) {
  const auto file = request.all ? fail(ErrorCode::not_found, "") : read_machine_file(path);
  if (!file || !models::lacks_figures(*file) || file->quick != request.quick) {
    return std::nullopt;
  }
  const auto here = collectors::calibration::describe_machine();
  return here && models::check_same_machine(*file, *here) ? std::optional(*file) : std::nullopt;
}

Result<models::Machine> measure(const CalibrateRequest& request, const std::string& path) {
  ProgressLine line(!request.quiet);
  collectors::calibration::CalibrationRequest what;
  what.quick = request.quick;
  what.version = CROSSTALK_VERSION;
  what.known = known_figures(request, path);
  if (what.known) {
    log_notice("keeping the figures of " + what.known->measured_at + " in " + path +
               " and measuring those that it lacks; --all measures all anew");
  }
  what.progress = [&line](const std::string& doing) { line.show("measuring " + doing); };
  return collectors::calibration::calibrate_machine(what);
}

std::string shown(const CalibrateRequest& request, const models::Machine& machine) {
  if (request.json) {
    return models::to_json(machine);
  }
  return render_machine(machine, style_of_output(ColorChoice::automatic));
}

int show_and_keep(const CalibrateRequest& request, const std::string& path, const models::Machine& machine) {
  if (const auto written = write_machine_file(path, machine); !written) {
    return failed(written.error(), exit_failed);
  }
  if ((request.json || !request.quiet) && !write_output(shown(request, machine), false)) {
    log_error("standard output cannot be written");
    return exit_failed;
  }
  forget_costs();
  log_notice("wrote " + path);
  return exit_ok;
}

}  // namespace

Result<Parsed<CalibrateRequest>> parse_calibrate(const Arguments& arguments) {
  CLI::App app(
      "Measures what this machine can do: floating point, caches, memory, what lines cost that processors\n"
      "share, and the limits that rooflines are drawn with.\n",
      "crosstalk calibrate");
  describe(app, "crosstalk calibrate [OPTION]...", calibrate_examples);
  CalibrateRequest request;
  app.add_option("-o,--output", request.output, "File to write [$XDG_CONFIG_HOME/crosstalk/machine.json]")
      ->type_name("FILE");
  app.add_flag("--all", request.all, "Measure also what an older crosstalk has left in the file");
  app.add_flag("--json", request.json, "Print the file's text instead of tables");
  app.add_flag("--quick", request.quick, "Measure for 20 seconds at most; figures are less certain");
  app.add_flag("-q,--quiet", request.quiet, "Print only errors");
  return parse_request(app, arguments, request, [] { return Result<void>(); });
}

namespace {

int measure_and_keep(const CalibrateRequest& request) {
  start_logging({request.quiet, 0});
  const auto path = writable_output(request);
  if (!path) {
    return failed(path.error(), exit_refused);
  }
  const auto machine = measure(request, *path);
  if (!machine) {
    return failed(machine.error(), exit_failed);
  }
  return show_and_keep(request, *path, *machine);
}

}  // namespace

int run_calibrate(const Arguments& arguments) { return serve(parse_calibrate(arguments), measure_and_keep); }

}  // namespace crosstalk::driver
