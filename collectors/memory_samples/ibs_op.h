// SPDX-License-Identifier: Apache-2.0
// Decodes the micro-operation that AMD's instruction-based sampling has tagged, from the registers that the kernel
// copies into a sample (PERF_SAMPLE_RAW). Pure.
//
// Fields: AMD64 Architecture Programmer's Manual, volume 2, 13.3 "Instruction-Based Sampling"; Processor Programming
// Reference of family 19h, MSRC001_1033 to MSRC001_1039.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/registers.h"

namespace crosstalk::collectors {

struct IbsOp {
  std::uint64_t ip = 0;       ///< the tagged instruction; 0: the processor could not keep it
  std::uint64_t address = 0;  ///< of the data, linear; 0: it accesses none, or the address is not known
  AccessKind kind = AccessKind::none;
  std::uint8_t width = 0;            ///< bytes; 0: not known
  bool missed = false;               ///< its line was not in the first cache
  std::uint32_t latency_cycles = 0;  ///< of a load that missed the first cache; 0: none, or not known
};

/// `raw`: the bytes of the field, without its size. Nothing if they are too few. A software prefetch is no access.
[[nodiscard]] std::optional<IbsOp> decode_ibs_op(std::span<const std::byte> raw);

}  // namespace crosstalk::collectors
