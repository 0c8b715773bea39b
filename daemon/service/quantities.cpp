// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/quantities.h"

#include <cmath>
#include <string>
#include <utility>

#include "base/number.h"

namespace crosstalk::service {
namespace {

struct Number {
  std::uint64_t value = 0;
  std::string_view unit;
};

std::optional<Number> whole(std::string_view text) {
  const auto value = take_leading<std::uint64_t>(text);
  return value ? std::optional(Number{*value, text}) : std::nullopt;
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
  const auto value = whole_number<double>(text);
  return value && *value >= 0 && *value <= 100 ? std::optional(*value / 100) : std::nullopt;
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
