// SPDX-License-Identifier: Apache-2.0
// Executes vector, mask and floating-point instructions on a copy of a thread's registers, of which some bytes are
// known. Arithmetic is the processor's own, under the thread's own rounding and treatment of denormal numbers; a result
// that would have raised a signal is unknown. Large: needs static storage and serves one lookahead at a time.
#pragma once

#include <cstdint>

#include "collectors/access/decoded_instruction.h"
#include "collectors/access/emulator.h"
#include "collectors/access/lookahead_memory.h"
#include "collectors/access/vector_operation.h"
#include "collectors/access/vector_registers.h"
#include "collectors/access/vector_step.h"

namespace crosstalk::in_target {

/// Signal-safe: allocates nothing, and restores the floating-point unit's mode.
class VectorUnit {
 public:
  VectorUnit(VectorRegisters& registers, const ProcessorFeatures& processor)
      : registers_(registers), processor_(processor) {}

  /// Executes an instruction with Operation::vector: on vector registers, on the general ones and the flags of
  /// `emulator`, and on `memory` at `address`. Unknown values stay unknown.
  void execute(const DecodedInstruction& instruction, Emulator& emulator, Value address, LookaheadMemory& memory);
  /// Forgets the registers that an instruction writes which is not followed.
  void passed_by(const DecodedInstruction& instruction);

 private:
  struct Run;
  VectorStep prepare(Run& run);
  Vector read(const Run& run, Place place, unsigned element);
  Vector read_memory(const Run& run, const VectorForm& form);
  bool execute_apart(Run& run, VectorStep& step);
  bool compute(Run& run, VectorStep& step);
  bool to_general(Run& run, const VectorStep& step);
  bool to_flags(Run& run, const VectorStep& step);
  bool on_masks(Run& run, VectorStep& step);
  void write(Run& run, VectorStep& step);
  void write_vector(Place place, const VectorStep& step);
  void write_memory(const Run& run, const VectorStep& step);
  void forget_results(Run& run);

  VectorRegisters& registers_;
  const ProcessorFeatures& processor_;
};

}  // namespace crosstalk::in_target
