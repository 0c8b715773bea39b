// SPDX-License-Identifier: Apache-2.0
// The record of a trap, and the state of a line that goes with it. Signal-safe.
#pragma once

#include <cstdint>

#include "base/registers.h"
#include "collectors/in_target/core/thread_state.h"
#include "profile/records.h"

namespace crosstalk::in_target {

struct TrapFacts {
  std::uint32_t watch = 0, sequence = 0;
  std::uint8_t word = 0;
  bool write_only = false;
  std::uint64_t line = 0;         // its address here
  bool opener_elsewhere = false;  // another process, with another address, may have opened the watch
};
void record_trap(ThreadState& self, const TrapFacts& facts, const Registers& registers, std::uint64_t now_ns);

/// The state of the line at `line`; false when it could not be read.
bool read_state(std::uint64_t line, profile::LineState& state);

}  // namespace crosstalk::in_target
