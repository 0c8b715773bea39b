// SPDX-License-Identifier: Apache-2.0
// Finds the instructions that may execute just before the one at an address.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/access/code.h"

namespace crosstalk::in_target {

/// Candidates for the instruction executed before the one at some address.
struct Predecessors {
  static constexpr std::size_t max_jumps = 5;

  std::uint8_t distance = 0;    ///< from the start of the instruction that lies before it; 0: not known
  std::uint8_t confidence = 0;  ///< in that: of 255
  std::uint8_t jumps = 0;
  std::uint8_t reserved = 0;
  std::int32_t jump[max_jumps] = {};  ///< offset of a jump to it from it, the nearest first
};
static_assert(sizeof(Predecessors) == sizeof(AccessCache::Payload));

/// Looks at 64 bytes before and 128 bytes from `address`, or in the cache. x86 code cannot be decoded backward; but
/// decoding from any byte soon falls into step with the true instructions (Linn and Debray, CCS 2003), so that the
/// start on which decoding from most bytes before agrees is nearly always the true one. A jump to a place shortly
/// before `address` proves that this place is a start. Jumps from afar are not seen.
Predecessors find_predecessors(CodeWindow& window, std::uint64_t address);

}  // namespace crosstalk::in_target
