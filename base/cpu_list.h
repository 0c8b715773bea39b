// SPDX-License-Identifier: Apache-2.0
// The kernel's lists of processors, in text.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/split.h"

namespace crosstalk {

/// No machine has more.
inline constexpr std::uint32_t most_cpus = 65536;

/// "0-3,8" -> 0 1 2 3 8; empty for any other text.
[[nodiscard]] inline std::vector<std::uint32_t> cpus_in(std::string_view list) {
  std::vector<std::uint32_t> cpus;
  for (const std::string_view part : split(list, ',')) {
    std::uint32_t first = 0;
    const char* const end = part.data() + part.size();
    const auto [rest, error] = std::from_chars(part.data(), end, first);
    std::uint32_t last = first;
    if (error == std::errc{} && rest != end && *rest == '-') {
      std::from_chars(rest + 1, end, last);
    }
    if (error != std::errc{} || last < first || last >= most_cpus) {
      return {};
    }
    for (std::uint32_t cpu = first; cpu <= last; ++cpu) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

}  // namespace crosstalk
