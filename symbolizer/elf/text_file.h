// SPDX-License-Identifier: Apache-2.0
// Files that compilers leave in folders where anyone may write.
#pragma once

#include <optional>
#include <string>

namespace crosstalk::symbolizer {

/// The first 1 GiB of a regular file; nullopt when there is none, or another kind of file has its name.
[[nodiscard]] std::optional<std::string> read_text_file(const std::string& path);

}  // namespace crosstalk::symbolizer
