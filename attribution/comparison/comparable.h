// SPDX-License-Identifier: Apache-2.0
// Units in which two profiles can be compared, and reasons to doubt the comparison.
#pragma once

#include <string>
#include <vector>

#include "attribution/comparison/comparison.h"

namespace crosstalk::attribution::comparison {

struct UnitChoice {
  Unit unit = Unit::seconds;
  std::string reason;  // a sentence
};
/// Seconds if both profiles hold a whole run of the same command on the same sort of processor, else shares.
[[nodiscard]] UnitChoice choose_unit(const Analysis& before, const Analysis& after, std::optional<Unit> wanted);

/// True if both are of the very same program file: its code is then at the same places.
[[nodiscard]] bool same_build(const Analysis& before, const Analysis& after);

/// The reason why watchpoints of a profile could not show all communication; `name`: "before" or "after". Empty: they
/// could.
[[nodiscard]] std::string blindness(const Analysis& analysis, const std::string& name);

/// One warning for each difference that makes the comparison doubtful.
[[nodiscard]] std::vector<Warning> differences(const Analysis& before, const Analysis& after);

}  // namespace crosstalk::attribution::comparison
