// SPDX-License-Identifier: Apache-2.0
// The text of source files, which may be on another machine, or gone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace crosstalk::driver {

/// "FILE" or "FILE:LINE" as a user writes it.
struct SourcePlace {
  std::string file;
  std::uint32_t line = 0;  // 0: none
};
[[nodiscard]] SourcePlace parse_place(const std::string& text);

/// Lines of the file that a compiler called `path`, without their ends, tabs as spaces; looked for under `sysroot`
/// first where that is not empty. nullopt: it is not there, or is no text of a reasonable size.
[[nodiscard]] std::optional<std::vector<std::string>> read_source(const std::string& path, const std::string& sysroot);

}  // namespace crosstalk::driver
