// SPDX-License-Identifier: Apache-2.0
// Reads values and names out of a file's bytes, wherever they may point.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace crosstalk::symbolizer {

using Bytes = std::span<const std::uint8_t>;

/// The value at the offset `at`; nullopt: it does not lie within the bytes.
template <class Value>
[[nodiscard]] std::optional<Value> value_at(Bytes bytes, std::uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(Value)) {
    return std::nullopt;
  }
  Value value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// The name at the offset `at`, up to a zero or the end of the bytes; empty: it does not lie within them.
[[nodiscard]] inline std::string_view name_at(Bytes bytes, std::uint64_t at) {
  if (at >= bytes.size()) {
    return {};
  }
  const auto* begin = reinterpret_cast<const char*>(bytes.data() + at);
  return {begin, ::strnlen(begin, bytes.size() - at)};
}

}  // namespace crosstalk::symbolizer
