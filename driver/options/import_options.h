// SPDX-License-Identifier: Apache-2.0
// The command line of `crosstalk import`.
#pragma once

#include <string>

#include "driver/options/command_line.h"

namespace crosstalk::driver {

struct ImportRequest {
  std::string input, output = "crosstalk.db";
  bool quiet = false;
  int verbosity = 0;
};

[[nodiscard]] Result<Parsed<ImportRequest>> parse_import(const Arguments& arguments);

}  // namespace crosstalk::driver
