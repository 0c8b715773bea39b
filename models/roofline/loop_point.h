// SPDX-License-Identifier: Apache-2.0
// A loop's point in a roofline: its work, its time, and the ratios that models draw.
//
// All amounts and times of a point are those of the same work, whatever it is: the whole recording, or one iteration.
// Take one iteration where the number of iterations is estimated: its uncertainty is then in the time alone, and
// intensities, which it cancels from, stay exact.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "models/roofline/estimate.h"
#include "models/roofline/roof.h"

namespace crosstalk::models::roofline {

/// The error of a quantity that is not known: "the loop's `what` are not known".
[[nodiscard]] Result<Estimate> unknown(std::string_view what);

/// A quantity that is not known is absent, with its reason; it is never 0.
struct LoopPoint {
  Setting setting = {};  ///< threads that share the work, width and operation of its instructions

  Result<Estimate> flops = unknown("floating-point operations");
  // Bytes that the core's instructions load and store, and that pass between a level and the caches nearer to the core.
  Result<Estimate> bytes_core = unknown("bytes to the core");
  Result<Estimate> bytes_l2 = unknown("bytes from L2");
  Result<Estimate> bytes_l3 = unknown("bytes from L3");
  Result<Estimate> bytes_memory = unknown("bytes from memory");

  // Retired instructions. One that loads or stores and also computes is a memory instruction.
  Result<Estimate> memory_instructions = unknown("memory instructions");
  Result<Estimate> other_instructions = unknown("other instructions");
  // Floating-point instructions: all, those of vectors, fused multiply-adds, and the others that multiply or add.
  Result<Estimate> fp_instructions = unknown("floating-point instructions");
  Result<Estimate> simd_instructions = unknown("vector instructions");
  Result<Estimate> fma_instructions = unknown("fused multiply-adds");
  Result<Estimate> multiply_instructions = unknown("multiplications");
  Result<Estimate> add_instructions = unknown("additions");

  Result<Estimate> cpu_s = unknown("seconds of CPU time");  ///< of all its threads together
  /// The time of the phase in which its threads run side by side; one thread needs none.
  Result<Estimate> elapsed_s = unknown("seconds of elapsed time");
  Result<Estimate> hz = unknown("cycles a second");

  /// `bytes_core` of L1D.
  [[nodiscard]] const Result<Estimate>& bytes(Level level) const;
};

/// The point of all threads of a loop: amounts and CPU times add up, a quantity that one thread lacks is absent.
/// `elapsed_s`: of the phase in which they ran side by side. Width and operation are kept where all threads share them.
[[nodiscard]] LoopPoint total_of(std::span<const LoopPoint> threads, const Result<Estimate>& elapsed_s);

/// flop/s: operations over CPU time of one thread, over elapsed time of several.
[[nodiscard]] Result<Estimate> performance(const LoopPoint& point);
/// flop/B: operations over bytes that the core requests (SPARCITY D1.2, eq. 2: CARM).
[[nodiscard]] Result<Estimate> intensity(const LoopPoint& point);
/// flop/B: operations over bytes from a level (SPARCITY D1.2, 2: hierarchical ORM). The operational intensity of the
/// original roofline is that of memory.
[[nodiscard]] Result<Estimate> intensity(const LoopPoint& point, Level level);
/// Non-memory instructions for each memory instruction, I_NM / I_M (SPARCITY D1.2, 2.3.1: MaRM).
[[nodiscard]] Result<Estimate> instruction_intensity(const LoopPoint& point);
/// Retired instructions a cycle of one core, the mean of its threads; at most what a core retires.
[[nodiscard]] Result<Estimate> instructions_per_cycle(const LoopPoint& point);

}  // namespace crosstalk::models::roofline
