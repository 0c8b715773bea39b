// SPDX-License-Identifier: Apache-2.0
// Instructions of one kind in registers, and loops of them: independent ones, chains, and fillers between loads that
// miss.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "collectors/calibration/code_writer.h"
#include "models/machine.h"

namespace crosstalk::collectors::calibration {

/// Instructions of a kind.
struct RegisterOperation {
  ZydisMnemonic mnemonic = ZYDIS_MNEMONIC_NOP;
  unsigned operands = 0;  // 0: `nop`; 2: r += s; 3: r = r + s, or for a fused one r = r s + s
  bool fused = false;
  ZydisRegisterClass registers = ZYDIS_REGCLASS_GPR64;
  bool supported = true;  // by this processor
};
[[nodiscard]] RegisterOperation operation_of(models::Kind kind);
[[nodiscard]] RegisterOperation operation_of(models::Width width, models::Precision precision,
                                             models::Operation operation);
/// `operation` is `add` or `mul`. Unsupported too where no such instruction exists.
[[nodiscard]] RegisterOperation operation_of(models::Width width, models::Element element, models::Operation operation);

/// A function `void(std::uint64_t rounds)`; `rounds` is 1 or more.
using RoundsFunction = void(std::uint64_t rounds);
inline constexpr unsigned register_round = 240;  // instructions of the kind in a round
/// Instructions that do not wait for each other, on as many registers as hide their latency.
[[nodiscard]] Result<ExecutableCode> independent_code(const RegisterOperation& operation);
/// Each waits for the one before.
[[nodiscard]] Result<ExecutableCode> chain_code(const RegisterOperation& operation);

/// Registers that independent instructions write in turn, enough to hide their latency.
struct Accumulators {
  unsigned first = 0, count = 0;
};
/// Those for a loop that uses vectors 0 to 7 itself.
[[nodiscard]] Accumulators upper_accumulators_of(const RegisterOperation& operation);
/// The begin of a function with such instructions: saves the registers that a caller expects again, and clears the
/// vectors. Whole numbers take r8 to r15 and read rcx.
void enter(CodeWriter& writer, const RegisterOperation& operation);
/// Gives the saved registers back.
void restore(CodeWriter& writer, const RegisterOperation& operation);
/// Appends an instruction that writes register `number` of its kind.
void append_step(CodeWriter& writer, const RegisterOperation& operation, unsigned number);

/// Two circles of pointers.
struct TwoPlaces {
  void* a = nullptr;
  void* b = nullptr;
};
using BufferFunction = void(TwoPlaces& places, std::uint64_t rounds);
/// A round follows a pointer of each circle in turns, with `fillers` independent instructions behind each. The two
/// loads of a round overlap if the re-order buffer reaches from one to the other.
[[nodiscard]] Result<ExecutableCode> buffer_code(const RegisterOperation& operation, unsigned fillers);

}  // namespace crosstalk::collectors::calibration
