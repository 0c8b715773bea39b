// SPDX-License-Identifier: Apache-2.0
// Finds mappings that hold code of a file that the dynamic loader does not know. V8, for example, maps its built-in
// functions a second time, near the code that it compiles.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace crosstalk::collectors {

/// So many of a process are named. A program that maps hundreds is one of its own kind, and each takes a record.
inline constexpr std::size_t most_mapped_parts = 64;

/// True if an executable mapping of this path holds code of a file. Compilers map memory without a file by such names
/// ("/memfd:doublemapper", "/dev/zero"), and their jitdumps; what was deleted cannot be read. Signal-safe.
[[nodiscard]] inline bool is_file_of_code(std::string_view path) {
  // By hand: string_view's functions that cut can throw, which would bring the C++ runtime into the target.
  const auto begins = [path](std::string_view with) {
    return path.size() >= with.size() && ::memcmp(path.data(), with.data(), with.size()) == 0;
  };
  const auto ends = [path](std::string_view with) {
    return path.size() >= with.size() &&
           ::memcmp(path.data() + (path.size() - with.size()), with.data(), with.size()) == 0;
  };
  return begins("/") && !begins("//") && !begins("/memfd:") && !begins("/dev/") && !begins("/SYSV") &&
         !ends(" (deleted)") && !ends(".dump");
}

}  // namespace crosstalk::collectors
