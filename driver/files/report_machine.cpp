// SPDX-License-Identifier: Apache-2.0
#include "driver/files/report_machine.h"

#include <fmt/format.h>

#include <utility>

#include "driver/files/machine_file.h"
#include "models/machine_json.h"

namespace crosstalk::driver {
namespace {

constexpr const char* lost = "busy times and classes of loops are not known: ";

ReportMachine missing(const std::string& why) { return {std::nullopt, lost + why}; }

}  // namespace

ReportMachine machine_of(const profile::Session& session) {
  if (!session.machine.empty()) {
    auto stamped = models::parse_machine(session.machine);
    return stamped ? ReportMachine{std::move(*stamped), ""}
                   : missing("the machine's figures in the profile make no sense: " + stamped.error().message);
  }
  const auto path = machine_file_path();
  auto machine = path ? read_machine_file(*path) : tl::unexpected<Error>(path.error());
  if (!machine && machine.error().code == ErrorCode::not_found) {
    return missing("'crosstalk calibrate' measures what this machine can do");
  }
  if (!machine) {
    return missing(machine.error().message);
  }
  if (machine->identity.name != session.cpu_model || machine->processors.size() != session.cpus) {
    return missing(
        fmt::format("{} is of another machine ({}, {} processors) than the profile ({}, {} processors); 'crosstalk "
                    "calibrate' measures the one that it runs on",
                    *path, machine->identity.name, machine->processors.size(), session.cpu_model, session.cpus));
  }
  return {std::move(*machine), ""};
}

}  // namespace crosstalk::driver
