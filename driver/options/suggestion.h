// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace crosstalk::driver {

/// Returns the end of an error about an unknown name: "; did you mean '--period'? See HELP" if one of `known` is a
/// typing error away from `given` (at most one letter in three replaced, missing, added, or swapped with its
/// neighbour); else "; see HELP".
[[nodiscard]] std::string remedy_for(std::string_view given, std::span<const std::string> known,
                                     const std::string& help);

/// Returns the long options of a subcommand, with their dashes.
[[nodiscard]] std::vector<std::string> options_of(const CLI::App& app);

}  // namespace crosstalk::driver
