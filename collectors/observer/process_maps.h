// SPDX-License-Identifier: Apache-2.0
// The mappings of a process, from /proc/PID/maps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/watch_policy/shared_line.h"

namespace crosstalk::observer {

struct Mapping {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t offset = 0;  // in the file
  bool readable = false, writable = false, executable = false;
  bool shared = false;       // with others that map the same
  std::uint64_t device = 0;  // major << 32 | minor
  std::uint64_t inode = 0;   // 0: no file
  bool deleted = false;      // the mapped file is not at its path any more
  std::string path;          // or [stack], [vdso], ...; empty: none

  [[nodiscard]] bool contains(std::uint64_t address) const { return address >= begin && address < end; }
  friend bool operator==(const Mapping&, const Mapping&) = default;
};

/// The mappings that modules are found by: those of files, and those of code.
[[nodiscard]] std::vector<Mapping> of_files_or_code(const std::vector<Mapping>& maps);

/// The text of /proc/PID/maps, by address. Lines that cannot be understood are left out.
[[nodiscard]] std::vector<Mapping> parse_maps(std::string_view text);

/// The mapping that `address` lies in; null: none. `maps` are by address.
[[nodiscard]] const Mapping* mapping_at(const std::vector<Mapping>& maps, std::uint64_t address);

/// True for the data of programs and libraries, and for the heap that begins behind the program: private memory that
/// only the kernel fills. The pages of other mappings may be served by a userfaultfd.
[[nodiscard]] bool is_own_data(const std::vector<Mapping>& maps, std::uint64_t address);

/// True if a watchpoint may lie there. False if the kernel writes the time there, or nothing is mapped.
[[nodiscard]] bool is_watchable(const Mapping* mapping);

/// Returns the line at `address`, which lies in `mapping`, if processes can share its memory. Does not check if others
/// do.
[[nodiscard]] watch_policy::SharedLine shared_line_in(const Mapping& mapping, std::uint64_t address);

/// Returns the line's address in a process with these mappings; 0: it has none.
[[nodiscard]] std::uint64_t address_of(const std::vector<Mapping>& maps, const watch_policy::SharedLine& line);

}  // namespace crosstalk::observer
