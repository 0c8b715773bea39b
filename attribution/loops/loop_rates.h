// SPDX-License-Identifier: Apache-2.0
// Iterations a second from the progress of loops' counters, and their work from their code.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "attribution/loops/loop_lookahead.h"
#include "attribution/loops/loop_progress.h"
#include "attribution/model/model.h"

namespace crosstalk::attribution {

inline constexpr std::size_t least_steps = 4;  // for a figure
inline constexpr double most_ended = 0.25;     // of steps, by the end of a visit

/// Tells if the two ends of steps lie in one visit, when only the loop's own registers give evidence. A visit that is
/// repeated in the same way, nearly once a sampling period or nearly several times, would look like slow progress in
/// one long visit. Two facts separate them: long visits seldom end between two samples, and iterations follow the small
/// differences between sampling intervals at the loop's true rate, which is then the rate found.
enum class Verdict : std::uint8_t {
  sound,
  too_few,    // steps to tell
  too_short,  // visits end between samples
  ambiguous,  // the intervals are too alike, or the rate changes too much
};
[[nodiscard]] Verdict judge(std::span<const LoopStep> steps);

/// Iterations a second over steps of the same visit, with its 95 % interval: a ratio estimate with Student's t. Its
/// variance is by the steps' or the visits' residuals, whichever is larger, with the correction for a finite population
/// (Cochran, "Sampling Techniques", 2.6 and 9A.8), because the rate is that of this run, and the steps cover a part of
/// the loop's `cpu_s` without callees. nullopt for fewer than four such steps.
struct Speed {
  double per_s = 0;
  Interval ci95;
  std::uint64_t steps = 0;
};
[[nodiscard]] std::optional<Speed> speed_of(std::span<const LoopStep> steps, double cpu_s);

/// The part of a loop's time in functions that it calls, 0 to 1, over steps within a visit: between two visits the
/// program does other things, too. If no step is known to be within a visit, over all steps, which is an upper bound.
[[nodiscard]] double part_in_callees(std::span<const LoopStep> steps);

/// For a loop whose function is called by a loop: iterations a second of the time of both, and its part of that time.
struct CalledSpeed {
  Speed speed;
  double part = 1;
  Interval part_ci95;
  std::map<std::uint32_t, Speed> by_thread = {};  // index -> the same speed; threads with few steps are left out
};

/// Fills in `rates` of all loops. The code gives the work of an iteration, or else lookaheads do.
void add_rates(std::vector<LoopRow>& loops, const std::map<LoopPlace, LoopTrail>& trails,
               const std::map<LoopPlace, LoopLookahead>& lookaheads, const ProgramView& view,
               const std::map<LoopPlace, CalledSpeed>& called = {});

}  // namespace crosstalk::attribution
