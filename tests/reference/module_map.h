// SPDX-License-Identifier: Apache-2.0
// Converts places in files and run-time addresses to the addresses of a module's own headers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/reference/modules.h"

namespace crosstalk::reference {

/// One loadable part of an ELF file: its program header.
struct LoadedPart {
  std::uint64_t address = 0, bytes = 0;  // module addresses; `bytes` in memory
  std::uint64_t offset = 0, file_bytes = 0;
};

/// Returns the loadable parts of the x86-64 ELF file at `path`; empty for anything else.
[[nodiscard]] std::vector<LoadedPart> loaded_parts(const std::string& path);

struct ModuleAddress {
  std::uint32_t file = 0;
  std::uint64_t address = 0;
};

class ModuleMap {
 public:
  /// `parts` by file; `segments` name files by index.
  ModuleMap(std::vector<std::vector<LoadedPart>> parts, std::span<const Segment> segments);

  /// Returns the address of a byte of a file; none if it is not loaded.
  [[nodiscard]] std::optional<std::uint64_t> of_offset(std::uint32_t file, std::uint64_t offset) const;
  /// Returns the module address of a run-time address, also in zeroed data behind a file's own. If several modules
  /// occupied it in turn, the last.
  [[nodiscard]] std::optional<ModuleAddress> of_address(std::uint64_t address) const;

 private:
  void add(const Segment& segment);

  struct Image {
    std::uint32_t file;
    std::uint64_t begin, end;  // run time
    std::uint64_t bias;        // run time - module address
  };
  std::vector<std::vector<LoadedPart>> parts_;
  std::vector<Image> images_;  // oldest first
};

}  // namespace crosstalk::reference
