// SPDX-License-Identifier: Apache-2.0
// The command line of `crosstalk service`.
#pragma once

#include <string>

#include "driver/options/command_line.h"
#include "driver/options/view_options.h"

namespace crosstalk::driver {

enum class ServiceAction { status, profiles, fetch };

struct ServiceCommand {
  ServiceAction action = ServiceAction::status;
  std::string service;  // of profiles and fetch
  std::string profile;  // of fetch; empty: the newest
  std::string output = "crosstalk.db";
  Format format = Format::text;  // or json
};

[[nodiscard]] Result<Parsed<ServiceCommand>> parse_service(const Arguments& arguments);

}  // namespace crosstalk::driver
