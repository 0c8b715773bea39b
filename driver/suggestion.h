// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace crosstalk::driver {

/// The end of an error about a name that is none: "; did you mean '--period'? See HELP" where one of `known` is a slip
/// of the finger away from `given` (one letter in three at most is another, missing, too many, or has changed places
/// with its neighbour); else "; see HELP".
[[nodiscard]] std::string remedy_for(std::string_view given, std::span<const std::string> known,
                                     const std::string& help);

/// The long options of a subcommand, with their dashes.
[[nodiscard]] std::vector<std::string> options_of(const CLI::App& app);

}  // namespace crosstalk::driver
