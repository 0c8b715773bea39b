// SPDX-License-Identifier: Apache-2.0
// Numbers in texts, whatever the locale.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace crosstalk {

/// Takes the number off the front of `text`; nullopt, and `text` stays: there is none, or it does not fit the type.
template <class Number>
[[nodiscard]] std::optional<Number> take_leading(std::string_view& text, int base = 10) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = [&] {
    if constexpr (std::is_floating_point_v<Number>) {
      return std::from_chars(text.data(), end, number);
    } else {
      return std::from_chars(text.data(), end, number, base);
    }
  }();
  if (error != std::errc{}) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return number;
}

/// The number at the front of a text, whatever is behind it.
template <class Number>
[[nodiscard]] std::optional<Number> leading_number(std::string_view text, int base = 10) {
  return take_leading<Number>(text, base);
}

/// The number that is all of the text.
template <class Number>
[[nodiscard]] std::optional<Number> whole_number(std::string_view text, int base = 10) {
  const std::optional<Number> number = take_leading<Number>(text, base);
  return text.empty() ? number : std::nullopt;
}

}  // namespace crosstalk
