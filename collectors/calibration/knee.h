// SPDX-License-Identifier: Apache-2.0
// Finds how many instructions fit in a re-order buffer, from the times of loops with more and more of them.
#pragma once

#include <optional>
#include <span>

namespace crosstalk::collectors::calibration {

/// The best time of a round with two loads that miss and `fillers` instructions behind each.
struct BufferTime {
  unsigned fillers = 0;
  double seconds = 0;
};
/// The number of fillers from which on the loads do not overlap any more: half of the rounds are longer.
struct Knee {
  double fillers = 0;
  double low = 0, high = 0;  // the step from overlapping loads to separate ones is between these
};
/// `times` ascend by fillers. Other work makes times longer, never shorter, and more fillers make no round shorter: so
/// a time counts as no longer than those behind it. `fillers_per_s`: of the instruction by itself; it is the least time
/// of many fillers, and where it hides the latency no knee can be seen. nullopt: there is none.
[[nodiscard]] std::optional<Knee> find_knee(std::span<const BufferTime> times, double fillers_per_s);

/// The most fillers with which the step could be seen, for loads of `latency_s`.
[[nodiscard]] unsigned most_fillers(double latency_s, double fillers_per_s);

}  // namespace crosstalk::collectors::calibration
