// SPDX-License-Identifier: Apache-2.0
// The facts of mapped modules, and of the mappings of this process.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace crosstalk::in_target::modules {

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

/// A line of /proc/self/maps.
struct MappedFile {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t offset = 0;             // of `begin` in the file, bytes
  std::uint64_t device = 0, inode = 0;  // major << 32 | minor; shared memory without a file has both, too
  bool shared = false;                  // MAP_SHARED
  bool executable = false;
  bool of_vdso = false;  // [vdso], or the kernel's time pages that belong to it: [vvar...]
  std::size_t path_length = 0;
};

/// Finds the mapping at `address`, its path in the first bytes of `path`. False: there is none, or it is not among the
/// first some thousand lines. Reads by system calls: no allocation, errno untouched. Signal-safe; some 5 us for ten
/// lines.
[[nodiscard]] bool find_mapped_file(std::uint64_t address, MappedFile& out, char* path, std::size_t limit);

/// Does the same for the first mapping of a file called `name` (the last part of its path).
[[nodiscard]] bool find_mapping_called(std::string_view name, MappedFile& out, char* path, std::size_t limit);

/// Calls `visit` for each mapping, among the first some thousand lines, with its path in the first bytes of `path`.
/// False: there may be more, or the list cannot be read.
bool visit_mappings(char* path, std::size_t limit, void (*visit)(const MappedFile& file, void* data), void* data);

/// Writes the path of the file that is mapped at `address`, as the kernel has it, into `out`; returns its
/// length, 0 when it is not found. Reads /proc/self/maps by system calls: no allocation, errno untouched.
[[nodiscard]] std::size_t mapped_path(std::uint64_t address, char* out, std::size_t limit);

/// Does the same for the program itself. /proc/self/exe does not tell it if the dynamic loader was executed to run the
/// program.
[[nodiscard]] std::size_t program_path(char* out, std::size_t limit);

}  // namespace crosstalk::in_target::modules
