// SPDX-License-Identifier: Apache-2.0
// What a process has mapped, from /proc/PID/maps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crosstalk::observer {

struct Mapping {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t offset = 0;  // in the file
  bool readable = false, writable = false, executable = false;
  std::uint64_t inode = 0;  // 0: no file
  std::string path;         // or [stack], [vdso], ...; empty: none

  [[nodiscard]] bool contains(std::uint64_t address) const { return address >= begin && address < end; }
};

/// The text of /proc/PID/maps, by address. Lines that can not be understood are left out.
[[nodiscard]] std::vector<Mapping> parse_maps(std::string_view text);

/// The mapping that `address` lies in; null: none. `maps` are by address.
[[nodiscard]] const Mapping* mapping_at(const std::vector<Mapping>& maps, std::uint64_t address);

/// May a watchpoint lie there? Not where the kernel writes the time, nor where nothing is mapped.
[[nodiscard]] bool is_watchable(const Mapping* mapping);

}  // namespace crosstalk::observer
