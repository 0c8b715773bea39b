// SPDX-License-Identifier: Apache-2.0
// The contents of one iteration of a loop without inner loops: they tell simple loops from complex ones, and what could
// be changed. Figures are means over the ways of an iteration, all equally likely.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "symbolizer/loops/flop_kinds.h"
#include "symbolizer/loops/integer_kinds.h"
#include "symbolizer/loops/iteration_time.h"
#include "symbolizer/loops/loop_anatomy.h"

namespace crosstalk::symbolizer {

struct LoopBodyFacts {
  double instructions = 0;
  bool one_way = true;
  bool calls = false;
  FlopsByKind flops;                               // without instructions of which the data decide how many (masks)
  double loads = 0, stores = 0, access_bytes = 0;  // accesses by instructions, and the bytes of all of them
  double stack_accesses = 0;                       // of them, those by the stack pointer
  double streaming_stores = 0;                     // of them, those that go round the caches
  double memory_instructions = 0;                  // that load, store, or both
  double gathers = 0, scatters = 0;                // instructions
  double gathered_bytes = 0;     // that gathers load at most: masks may leave out some; not in `access_bytes`
  double indirect_elements = 0;  // loaded from addresses that were loaded, of gathers all that they may load
  double indirect_bytes = 0;     // of those elements
  /// The bytes of its other accesses.
  [[nodiscard]] double streamed_bytes() const { return access_bytes + gathered_bytes - indirect_bytes; }
  bool only_gathers_vary = true;  // no other access moves an amount that its data decide (masks, repetition)
  IntegersByKind integers;
  bool integers_fixed = true;   // false: `integers` is without some instruction, whose number the data decide (masks)
  bool indirect = false;        // an address depends on what was loaded from a place that changes with the iteration
  std::optional<double> chain;  // cycles of the slowest chain of dependences (chain_cycles())
  bool chain_is_fpu = false;    // without floating-point operations that would take less than half as long
};

/// nullopt without ways, and if an instruction cannot be decoded.
[[nodiscard]] std::optional<LoopBodyFacts> loop_body_facts(std::span<const Way> ways, const CoreCycles& core);

/// The resource for which a late instruction has waited.
enum class WaitsFor : std::uint8_t {
  nothing,     // integer arithmetic, moves between registers, jumps
  store,       // a place in the store buffer
  load,        // data
  fpu,         // the operands of floating-point or vector arithmetic, or a unit for it
  loaded_fpu,  // either: arithmetic on an operand in memory
};
[[nodiscard]] WaitsFor waits_for(std::span<const std::uint8_t> code);

}  // namespace crosstalk::symbolizer
