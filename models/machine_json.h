// SPDX-License-Identifier: Apache-2.0
// The text of a machine file, as docs/machine-json.md describes it. From and to text; files are the callers' business.
#pragma once

#include <string>
#include <string_view>

#include "models/machine.h"

namespace crosstalk::models {

/// The version of the format: a reader refuses any other one.
inline constexpr std::string_view machine_schema = "crosstalk.machine/1";

/// A figure on a line.
[[nodiscard]] std::string to_json(const Machine& machine);

/// What `to_json` wrote, checked by `validate`. An error names the field. Members that are not known are passed over,
/// so that later versions may add some.
[[nodiscard]] Result<Machine> parse_machine(std::string_view text);

}  // namespace crosstalk::models
