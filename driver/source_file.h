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

/// Where the file is that a compiler called `path`: under `sysroot` first, where that is not empty. nullopt: it is not
/// here, or is larger than any source.
[[nodiscard]] std::optional<std::string> find_source(const std::string& path, const std::string& sysroot);

/// Its lines, without their ends, tabs as spaces.
[[nodiscard]] std::optional<std::vector<std::string>> read_source(const std::string& path, const std::string& sysroot);

/// Whether `file` was last written after `other`; false where that is not known.
[[nodiscard]] bool written_after(const std::string& file, const std::string& other);

}  // namespace crosstalk::driver
