// SPDX-License-Identifier: Apache-2.0
// Reads text files that compilers leave in world-writable folders.
#pragma once

#include <optional>
#include <string>

namespace crosstalk::symbolizer {

/// The first 1 GiB of a regular file; nullopt if there is none, or another kind of file has its name.
[[nodiscard]] std::optional<std::string> read_text_file(const std::string& path);

}  // namespace crosstalk::symbolizer
