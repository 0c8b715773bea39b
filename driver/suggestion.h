// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace crosstalk::driver {

/// "; did you mean '--period'?" where one of `known` is a slip of the finger away from `given` (one letter in three at
/// most is another, missing, too many, or has changed places with its neighbour); else empty.
[[nodiscard]] std::string did_you_mean(std::string_view given, std::span<const std::string> known);

}  // namespace crosstalk::driver
