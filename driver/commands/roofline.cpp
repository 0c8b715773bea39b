// SPDX-License-Identifier: Apache-2.0
// `crosstalk roofline`: places the loops of a profile in the machine's rooflines.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "attribution/analysis.h"
#include "driver/commands/serve.h"
#include "driver/commands/subcommands.h"
#include "driver/commands/viewing.h"
#include "driver/files/machine_file.h"
#include "driver/files/report_machine.h"
#include "driver/files/result_file.h"
#include "driver/options/roofline_options.h"
#include "driver/roofline/matrix.h"
#include "driver/roofline/report.h"
#include "driver/terminal/log.h"
#include "driver/terminal/terminal.h"
#include "profile/reader.h"

namespace crosstalk::driver {
namespace {

/// The machine to take the roofs from, or why there is none.
Result<models::Machine> machine_for(const RooflineRequest& request, const profile::Session& session) {
  if (!request.machine.empty()) {
    return read_machine_file(request.machine);
  }
  ReportMachine found = machine_of(session);
  if (found.machine) {
    return std::move(*found.machine);
  }
  const std::size_t reason = found.missing.find(": ");
  return fail(
      ErrorCode::not_found,
      "the roofs are not known: " + (reason == std::string::npos ? found.missing : found.missing.substr(reason + 2)));
}

TextStyle style_for(const RooflineRequest& request) {
  return style_of_output(request.output.empty() ? request.color : ColorChoice::never);
}

std::string render(const RooflineReport& report, const RooflineRequest& request) {
  switch (request.format) {
    case Format::json:
      return render_roofline_json(report);
    case Format::csv:
      return render_roofline_csv(report);
    case Format::svg:
      return render_roofline_svg(report);
    case Format::text:
      break;
  }
  return render_roofline_text(report, style_for(request));
}

Result<void> keep_loop(std::uint32_t id, attribution::Roofline& roofline) {
  std::erase_if(roofline.loops, [id](const auto& loop) { return loop.row().id != id; });
  if (!roofline.loops.empty()) {
    return {};
  }
  for (const attribution::Unplaced& unplaced : roofline.unplaced) {
    if (std::find(unplaced.ids.begin(), unplaced.ids.end(), id) != unplaced.ids.end()) {
      return fail(ErrorCode::not_found, "--loop " + std::to_string(id) + ": it has no place: " + unplaced.why);
    }
  }
  return fail(ErrorCode::not_found, "--loop " + std::to_string(id) +
                                        ": no loop of this id has a place; --format json lists those that have one");
}

Result<void> write(const std::string& text, const RooflineRequest& request) {
  if (!request.output.empty()) {
    return write_result(request.output, text);
  }
  return write_output(text, request.pager && request.format == Format::text)
             ? Result<void>()
             : fail(ErrorCode::system, "standard output cannot be written");
}

/// A profile's loops in the rooflines of `machine`. The analysis must stay where it is.
struct PlacedProfile {
  attribution::Analysis analysis;
  attribution::Roofline roofline;
};
Result<std::unique_ptr<PlacedProfile>> placed(const profile::ProfileReader& profile, const models::Machine& machine,
                                              const RooflineRequest& request) {
  attribution::AnalysisOptions options;
  options.symbols.sysroot = request.sysroot;
  options.machine = &machine;
  auto analysis = attribution::analyse(profile, options);
  if (!analysis) {
    return tl::unexpected<Error>(analysis.error());
  }
  auto result = std::make_unique<PlacedProfile>();
  result->analysis = std::move(*analysis);
  result->roofline = attribution::roofline_of(result->analysis, machine, request.model, request.roofs);
  return result;
}

/// The earlier profile, by the same roofs; null: none is wanted.
Result<std::unique_ptr<PlacedProfile>> placed_before(const models::Machine& machine, const RooflineRequest& request) {
  if (request.against.empty()) {
    return std::unique_ptr<PlacedProfile>();
  }
  const auto profile = profile::ProfileReader::open(request.against);
  return profile ? placed(*profile, machine, request) : tl::unexpected<Error>(profile.error());
}

/// Says so if the roofs are of another kind of machine than the profile, which only a named file may be.
void note_other_machine(const models::Machine& machine, const profile::Session& session,
                        attribution::Roofline& roofline) {
  if (machine.identity.name != session.cpu_model || machine.processors.size() != session.cpus) {
    roofline.notes.push_back(
        fmt::format("The roofs are of another machine ({}, {} processors) than the profile ({}, {} processors): "
                    "crosstalk calibrate "
                    "measures the one that it runs on.",
                    machine.identity.name, machine.processors.size(), session.cpu_model, session.cpus));
  }
}

Result<void> draw(const RooflineRequest& request) {
  const auto profile = profile::ProfileReader::open(request.input);
  if (!profile) {
    return tl::unexpected<Error>(profile.error());
  }
  auto machine = machine_for(request, profile->session());
  if (!machine) {
    return tl::unexpected<Error>(machine.error());
  }
  auto after = placed(*profile, *machine, request);
  auto before = after ? placed_before(*machine, request) : tl::unexpected<Error>(after.error());
  if (!before) {
    return tl::unexpected<Error>(before.error());
  }
  RooflineReport report{&(*after)->analysis, &*machine, std::move((*after)->roofline),
                        *before ? &(*before)->roofline : nullptr, request.loop.has_value()};
  note_other_machine(*machine, profile->session(), report.roofline);
  if (request.loop) {
    if (auto kept = keep_loop(*request.loop, report.roofline); !kept) {
      return kept;
    }
  }
  if (report.roofline.loops.empty() && report.roofline.unplaced.empty()) {
    return fail(ErrorCode::not_found, "there is no loop in " + request.input + ": record a program that computes");
  }
  return write(render(report, request), request);
}

/// The machine of a matrix: the named one, or this user's if it is there.
Result<std::optional<models::Machine>> machine_for_matrix(const RooflineRequest& request) {
  const auto path = request.machine.empty() ? machine_file_path() : Result<std::string>(request.machine);
  auto machine = path ? read_machine_file(*path) : tl::unexpected<Error>(path.error());
  if (machine) {
    return std::optional(std::move(*machine));
  }
  return request.machine.empty() ? Result<std::optional<models::Machine>>(std::nullopt)
                                 : tl::unexpected<Error>(machine.error());
}

Result<void> draw_matrix(const RooflineRequest& request) {
  std::ifstream file(request.matrix);
  if (!file) {
    return fail(ErrorCode::not_found, "cannot read " + request.matrix + ": " + std::strerror(errno));
  }
  const auto shape = read_matrix_market(file, request.matrix);
  const auto machine = shape ? machine_for_matrix(request) : tl::unexpected<Error>(shape.error());
  if (!machine) {
    return tl::unexpected<Error>(machine.error());
  }
  const auto place = place_of_matrix(*shape, request.matrix, *machine ? &**machine : nullptr, request.roofs.threads);
  if (!place) {
    return tl::unexpected<Error>(place.error());
  }
  return write(
      request.format == Format::json ? render_matrix_json(*place) : render_matrix_text(*place, style_for(request)),
      request);
}

int show_roofline(const RooflineRequest& request) {
  start_logging({false, request.verbosity});
  return_freed_blocks();
  if (auto drawn = request.matrix.empty() ? draw(request) : draw_matrix(request); !drawn) {
    log_error(drawn.error().message);
    return exit_failed;
  }
  return exit_ok;
}

}  // namespace

int run_roofline(const Arguments& arguments) { return serve(parse_roofline(arguments), show_roofline); }

}  // namespace crosstalk::driver
