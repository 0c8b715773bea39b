// SPDX-License-Identifier: Apache-2.0
// Quantities as people write them in the configuration: "90s", "7d", "1%", "512M".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace crosstalk::service {

/// Seconds: a whole number with s, m, h or d. nullopt: it is none, or more than a hundred years.
[[nodiscard]] std::optional<std::uint64_t> parse_duration_s(std::string_view text);
/// A fraction in [0, 1]: a number with "%". nullopt: it is none.
[[nodiscard]] std::optional<double> parse_percent(std::string_view text);
/// Bytes: a whole number with K, M, G or T, powers of 1024, or without one. nullopt: it is none, or over 2^60.
[[nodiscard]] std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace crosstalk::service
