// SPDX-License-Identifier: Apache-2.0
// Large memory that several measurements use one after another: to touch it takes longer than to measure with it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "collectors/calibration/memory_block.h"

namespace crosstalk::collectors::calibration {

class HeldMemory {
 public:
  /// Has to be called before `block` is for any of `cpus`.
  void expect(const std::vector<std::uint32_t>& cpus);
  /// Returns at least `bytes` for the processor's thread, which has to be the one that calls; threads of different
  /// processors may call at the same time. Any earlier caller may have written the block's contents.
  [[nodiscard]] Result<MemoryBlock*> block(std::uint32_t cpu, std::uint64_t bytes, std::uint64_t deadline_ns);
  /// Returns the bytes of all processors' blocks.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  std::map<std::uint32_t, MemoryBlock> blocks_;
};

}  // namespace crosstalk::collectors::calibration
