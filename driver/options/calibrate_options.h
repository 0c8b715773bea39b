// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "driver/options/command_line.h"
#include "driver/terminal/canvas.h"
#include "models/machine.h"

namespace crosstalk::driver {

struct CalibrateRequest {
  std::string output;  // empty: the user's machine file
  bool json = false, quick = false, quiet = false;
  bool all = false;  // measure also what the file has already
};
[[nodiscard]] Result<Parsed<CalibrateRequest>> parse_calibrate(const Arguments& arguments);

/// The figures as tables.
[[nodiscard]] std::string render_machine(const models::Machine& machine, const TextStyle& style);

}  // namespace crosstalk::driver
