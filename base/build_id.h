// SPDX-License-Identifier: Apache-2.0
// Build ids in hexadecimal: how they are written and compared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace crosstalk {

/// Two digits a byte, in lower case.
[[nodiscard]] inline std::string hexadecimal(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<unsigned>(byte) >> 4U];
    text += digits[std::to_integer<unsigned>(byte) & 15U];
  }
  return text;
}

/// True if a recorded build id is that of a file, both in hexadecimal. perf's records hold 20 bytes: they cut longer
/// ids, and old versions of perf pad shorter ones with zeros.
[[nodiscard]] inline bool same_build_id(std::string_view recorded, std::string_view of_file) {
  constexpr std::size_t room = 40;  // digits of perf's 20 bytes
  if (recorded == of_file) {
    return true;
  }
  if (of_file.empty() || recorded.size() != room) {
    return false;
  }
  const std::size_t common = std::min(recorded.size(), of_file.size());
  return recorded.substr(0, common) == of_file.substr(0, common) &&
         recorded.substr(common).find_first_not_of('0') == std::string_view::npos;
}

}  // namespace crosstalk
