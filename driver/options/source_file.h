// SPDX-License-Identifier: Apache-2.0
// Reads the text of source files, which may be on another machine, or gone.
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

/// Returns the location of the file that a compiler called `path`: first under `sysroot`, if not empty. nullopt: not
/// found, or too large for a source.
[[nodiscard]] std::optional<std::string> find_source(const std::string& path, const std::string& sysroot);

/// Returns the lines without their line ends, with tabs expanded to spaces.
[[nodiscard]] std::optional<std::vector<std::string>> read_source(const std::string& path, const std::string& sysroot);

/// True if `file` was last written after `other`; false if that is unknown.
[[nodiscard]] bool written_after(const std::string& file, const std::string& other);

}  // namespace crosstalk::driver
