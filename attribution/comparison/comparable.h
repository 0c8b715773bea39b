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

/// One for each thing that differs and should not.
[[nodiscard]] std::vector<Warning> differences(const Analysis& before, const Analysis& after);

/// A shell-quoted command without its first word.
[[nodiscard]] std::string arguments_of(const std::string& command);
/// The name of the first word's file.
[[nodiscard]] std::string program_of(const std::string& command);

}  // namespace crosstalk::attribution::comparison
