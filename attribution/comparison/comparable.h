// SPDX-License-Identifier: Apache-2.0
// What two profiles can be compared in, and what makes a comparison doubtful.
#pragma once

#include <string>
#include <vector>

#include "attribution/comparison/comparison.h"

namespace crosstalk::attribution::comparison {

struct UnitChoice {
  Unit unit = Unit::seconds;
  std::string reason;  // a sentence
};
/// Seconds where both profiles hold a whole run of the same command on the same sort of processor, else shares.
[[nodiscard]] UnitChoice choose_unit(const Analysis& before, const Analysis& after, std::optional<Unit> wanted);

/// Whether both are of the very same program file: then its code is where it was.
[[nodiscard]] bool same_build(const Analysis& before, const Analysis& after);

/// Why the watchpoints of a profile could not show all communication; `name`: "before" or "after". Empty: they could.
[[nodiscard]] std::string blindness(const Analysis& analysis, const std::string& name);

/// One for each thing that differs and should not.
[[nodiscard]] std::vector<Warning> differences(const Analysis& before, const Analysis& after);

}  // namespace crosstalk::attribution::comparison
