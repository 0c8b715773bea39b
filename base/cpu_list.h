// SPDX-License-Identifier: Apache-2.0
// The kernel's lists of processors, in text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/number.h"
#include "base/split.h"

namespace crosstalk {

/// No machine has more.
inline constexpr std::uint32_t most_cpus = 65536;

/// "0-3,8" -> 0 1 2 3 8; empty for any other text.
[[nodiscard]] inline std::vector<std::uint32_t> cpus_in(std::string_view list) {
  std::vector<std::uint32_t> cpus;
  for (const std::string_view part : split(list, ',')) {
    std::string_view rest = part;
    const auto first = take_leading<std::uint32_t>(rest);
    if (!first) {
      return {};
    }
    const std::uint32_t last =
        rest.starts_with('-') ? leading_number<std::uint32_t>(rest.substr(1)).value_or(*first) : *first;
    if (last < *first || last >= most_cpus) {
      return {};
    }
    for (std::uint32_t cpu = *first; cpu <= last; ++cpu) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

}  // namespace crosstalk
