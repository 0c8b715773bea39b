// SPDX-License-Identifier: Apache-2.0
// Converts a machine to and from text (docs/machine-json.md). Callers read and write the files.
#pragma once

#include <string>
#include <string_view>

#include "models/machine.h"

namespace crosstalk::models {

/// The version of the format: a reader refuses any other one.
inline constexpr std::string_view machine_schema = "crosstalk.machine/1";

/// Writes each figure on one line.
[[nodiscard]] std::string to_json(const Machine& machine);

/// Parses the output of `to_json` and checks it with `validate`. An error names the field. Ignores unknown members, so
/// that later versions may add some.
[[nodiscard]] Result<Machine> parse_machine(std::string_view text);

}  // namespace crosstalk::models
