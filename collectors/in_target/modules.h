// SPDX-License-Identifier: Apache-2.0
// Which files of code are mapped where. Public entry points are in hooks.h.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

#include "profile/records.h"

namespace crosstalk::in_target::modules {

inline constexpr std::size_t known_limit = 2048;  // more modules are not reported
inline constexpr std::size_t path_limit = 4096;

/// [begin, end) of a module's PT_LOAD segments, at run time. 0, 0: it has none.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
[[nodiscard]] Extent extent_of(const dl_phdr_info& module);

/// Copies the GNU build id out of the module's notes in memory (ELF gABI, "Note Section"); returns its bytes,
/// 0 when there is none or it is longer than `limit`.
[[nodiscard]] std::size_t build_id_of(const dl_phdr_info& module, std::uint8_t* out, std::size_t limit);

/// Writes the path of the file that is mapped at `address`, as the kernel has it, into `out`; returns its
/// length, 0 when it is not found. Reads /proc/self/maps by system calls: no allocation, errno untouched.
[[nodiscard]] std::size_t mapped_path(std::uint64_t address, char* out, std::size_t limit);

}  // namespace crosstalk::in_target::modules
