// SPDX-License-Identifier: Apache-2.0
// From the progress of loops' counters to iterations a second, and from their code to the work of them.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "attribution/loops/loop_lookahead.h"
#include "attribution/loops/loop_progress.h"
#include "attribution/model.h"

namespace crosstalk::attribution {

/// Whether the two ends of steps can be taken to lie in one visit where nothing but the loop's own registers tells.
/// A visit that is repeated alike, nearly once a sampling period or nearly several times, would look like slow progress
/// in one long visit. Two things tell them apart: long visits seldom end between two samples, and iterations follow the
/// small differences between sampling intervals at the loop's true rate, which is then the one found.
enum class Verdict : std::uint8_t {
  sound,
  too_few,    // steps to tell
  too_short,  // visits end between samples
  ambiguous,  // the intervals are too alike, or the rate changes too much
};
[[nodiscard]] Verdict judge(std::span<const LoopStep> steps);

/// Iterations a second over steps of the same visit, with its 95 % interval: a ratio estimate, its variance by the
/// steps' or the visits' residuals, whichever is larger, with Student's t, and with the correction for a finite
/// population (Cochran, "Sampling Techniques", 2.6 and 9A.8): it is the rate of this run that is wanted, and the steps
/// cover a part of the loop's `cpu_s`, time in callees aside. nullopt for fewer than four such steps.
struct Speed {
  double per_s = 0;
  Interval ci95;
  std::uint64_t steps = 0;
};
[[nodiscard]] std::optional<Speed> speed_of(std::span<const LoopStep> steps, double cpu_s);

/// The part of a loop's time that functions take which it calls, 0 to 1. Of steps within a visit: between two visits
/// the program does other things as well. Where no step is known to be within one, of all of them, which is an upper
/// bound.
[[nodiscard]] double part_in_callees(std::span<const LoopStep> steps);

/// Of a loop whose function a loop calls: iterations a second of the time that both take, and the loop's part of it.
struct CalledSpeed {
  Speed speed;
  double part = 1;
  Interval part_ci95;
};

/// Fills in `rates` of all loops. Work an iteration is what the code fixes; else what lookaheads have found.
void add_rates(std::vector<LoopRow>& loops, const std::map<LoopPlace, LoopTrail>& trails,
               const std::map<LoopPlace, LoopLookahead>& lookaheads, const ProgramView& view,
               const std::map<LoopPlace, CalledSpeed>& called = {});

}  // namespace crosstalk::attribution
