// SPDX-License-Identifier: Apache-2.0
// Comparison of recorded build ids with those of files.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace crosstalk {

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
