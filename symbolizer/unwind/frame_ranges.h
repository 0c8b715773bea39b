// SPDX-License-Identifier: Apache-2.0
// The code ranges in .eh_frame. Stripped binaries keep it, so it gives the bounds of functions without symbols.
#pragma once

#include <optional>
#include <vector>

#include "symbolizer/elf/elf_file.h"

namespace crosstalk::symbolizer {

class FrameRanges {
 public:
  explicit FrameRanges(const ElfFile& code);
  [[nodiscard]] std::optional<AddressRange> at(std::uint64_t address) const;
  [[nodiscard]] const std::vector<AddressRange>& all() const { return ranges_; }

 private:
  std::vector<AddressRange> ranges_;  // sorted
};

}  // namespace crosstalk::symbolizer
