// SPDX-License-Identifier: Apache-2.0
// Recognises the collector's own library among the files of a program.
#pragma once

#include <string_view>

namespace crosstalk {

[[nodiscard]] constexpr bool is_collector_file(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with("libcrosstalk.");
}

}  // namespace crosstalk
