// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/held_memory.h"

#include <utility>

namespace crosstalk::collectors::calibration {

void HeldMemory::expect(const std::vector<std::uint32_t>& cpus) {
  for (const std::uint32_t cpu : cpus) {
    blocks_.try_emplace(cpu);
  }
}

Result<MemoryBlock*> HeldMemory::block(std::uint32_t cpu, std::uint64_t bytes, std::uint64_t deadline_ns) {
  MemoryBlock& held = blocks_.at(cpu);
  if (held.size() < bytes) {
    held = MemoryBlock();  // two of them may be more than there is
    auto mapped = MemoryBlock::map(bytes, deadline_ns);
    if (!mapped) {
      return tl::unexpected<Error>(mapped.error());
    }
    held = std::move(*mapped);
  }
  return &held;
}

std::uint64_t HeldMemory::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [cpu, block] : blocks_) {
    sum += block.size();
  }
  return sum;
}

}  // namespace crosstalk::collectors::calibration
