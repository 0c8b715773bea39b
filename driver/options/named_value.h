// SPDX-License-Identifier: Apache-2.0
// Parses options whose values have names.
#pragma once

#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.h"

namespace crosstalk::driver {

/// Returns the value called `name` in `names` (pairs of name and value); an error lists the names.
template <class Names>
[[nodiscard]] auto named(const char* option, const Names& names, const std::string& name)
    -> Result<std::decay_t<decltype(std::begin(names)->second)>> {
  std::string known;
  for (const auto& [candidate, value] : names) {
    if (candidate == name) {
      return value;
    }
    known += (known.empty() ? "" : ", ") + std::string(candidate);
  }
  return fail(ErrorCode::invalid_argument,
              std::string(option) + ": there is no '" + name + "'; choose one of: " + known);
}

}  // namespace crosstalk::driver
