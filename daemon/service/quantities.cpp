// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/quantities.h"

#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace crosstalk::service {
namespace {

struct Number {
  std::uint64_t value = 0;
  std::string_view unit;
};

std::optional<Number> whole(std::string_view text) {
  Number number;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number.value);
  if (error != std::errc{}) {
    return std::nullopt;
  }
  number.unit = std::string_view(rest, static_cast<std::size_t>(end - rest));
  return number;
}

std::optional<std::uint64_t> scaled(const Number& number, std::uint64_t unit, std::uint64_t most) {
  return number.value <= most / unit ? std::optional(number.value * unit) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> parse_duration_s(std::string_view text) {
  constexpr std::uint64_t most = 100ULL * 366 * 86400;
  const auto number = whole(text);
  for (const auto& [unit, seconds] :
       {std::pair<std::string_view, std::uint64_t>{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}}) {
    if (number && number->unit == unit) {
      return scaled(*number, seconds, most);
    }
  }
  return std::nullopt;
}

std::optional<double> parse_percent(std::string_view text) {
  if (!text.ends_with('%')) {
    return std::nullopt;
  }
  text.remove_suffix(1);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const bool fits = error == std::errc{} && rest == end && value >= 0 && value <= 100;
  return fits ? std::optional(value / 100) : std::nullopt;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::uint64_t most = 1ULL << 60U;
  const auto number = whole(text);
  unsigned shift = 0;
  for (const std::string_view unit : {"", "K", "M", "G", "T"}) {
    if (number && number->unit == unit) {
      return scaled(*number, 1ULL << shift, most);
    }
    shift += 10;
  }
  return std::nullopt;
}

}  // namespace crosstalk::service
