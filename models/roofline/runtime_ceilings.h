// SPDX-License-Identifier: Apache-2.0
// The run-time-oriented roofline: how much each feature of the hardware that a loop does not exploit costs this loop.
// Its ceilings hold for one loop, where those of ceilings.h hold for a machine.
//
// Source: as ceilings.h, A.3, fig. A6. In-core ceilings are computed from instructions alone, so stalls for memory do
// not enter them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "models/roofline/loop_point.h"
#include "models/roofline/verdict.h"

namespace crosstalk::models::roofline {

// Parts of the peak, from 0 to 1, that a loop can reach.
/// (1 + (w - 1) s) / w for vectors of w elements, where s of the floating-point instructions are vector instructions.
/// The source prints w = 2; other widths are derived.
[[nodiscard]] Result<Estimate> simd_part(double lanes, const Estimate& vector_share);
/// (a + m) / (2 max(a, m)) for separate pipes of additions and multiplications, of which one iteration has a and m.
/// Derived.
[[nodiscard]] Result<Estimate> separate_pipes_part(const Estimate& additions, const Estimate& multiplications);
/// (1 + x) / 2 for fused multiply-adds, which are x of the floating-point instructions. Derived.
[[nodiscard]] Result<Estimate> fused_part(const Estimate& fused_share);
/// Product of the parts. The basis is `assumed`: features are taken to be independent, which nothing tests.
[[nodiscard]] Result<Estimate> joint_part(std::span<const Estimate> parts);

/// flop/s that dependences and issue allow one core: operations of an iteration over the longer of the cycles of the
/// longest chain from one iteration to the next and the cycles to issue it, times the frequency. Derived.
[[nodiscard]] Result<Estimate> ilp_rate(const Estimate& flops, const Estimate& recurrence_cycles,
                                        const Estimate& issue_cycles, const Estimate& hz);

enum class Feature : std::uint8_t { vectors, multiply_add, independent_operations, all };
/// The cost of a feature for a loop that does not use it fully.
struct FeatureCost {
  Feature feature = Feature::all;
  Estimate ceiling;  ///< flop/s
  Estimate cost;     ///< peak / ceiling, at least 1: the factor that full use of the feature gains at most
};
/// The core's units for multiplication and addition.
enum class MultiplyAdd : std::uint8_t { separate_pipes, fused };
/// The costs of the features that are known of the loop, the greatest first; `all` is their product and comes last, if
/// there are two or more. `lanes` are those of the peak's vectors; `ilp` is `ilp_rate` of the loop for all its threads.
/// Fails if nothing is known.
[[nodiscard]] Result<std::vector<FeatureCost>> feature_costs(const LoopPoint& point, const Roof& peak, double lanes,
                                                             MultiplyAdd hardware,
                                                             const std::optional<Estimate>& ilp = {});

/// B sum(b) / (n max(b)): bandwidth that n memory controllers give together if they serve b_i bytes each. Derived.
[[nodiscard]] Result<Roof> controller_balance_ceiling(const Roof& bandwidth,
                                                      std::span<const double> bytes_by_controller);

/// Evidence on a loop's memory traffic, each a part of 1. Absent: not known.
struct MemoryEvidence {
  std::optional<double> compulsory = {}, capacity = {}, conflict = {};  ///< of its misses
  std::optional<double> controller_balance = {};  ///< mean over greatest load of the memory controllers
  std::optional<double> idle_queues = {};         ///< of the time of loads: the queues were not full
};
/// A part below this is not worth an optimisation, since 1 % to 10 % are within the errors of the evidence.
inline constexpr double worth_advice = 0.1;
/// Capacity misses -> block_for_cache; conflict misses -> pad_arrays; both only if worth it, and neither for compulsory
/// misses, which no cache avoids. Controllers out of balance -> affinity; idle queues -> prefetch. The greatest first.
[[nodiscard]] Result<std::vector<Advice>> memory_advice(const MemoryEvidence& evidence);

}  // namespace crosstalk::models::roofline
