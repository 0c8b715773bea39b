// SPDX-License-Identifier: Apache-2.0
// The iterations of each visit of a counted inner loop, from its only exit and from its entry.
#pragma once

#include <cstdint>
#include <optional>

#include "symbolizer/loops/loop_counters.h"

namespace crosstalk::symbolizer {

/// An inner loop runs until `distance` + k * `step`, k = 0, 1, ... meets the condition. Both are forms of registers
/// that the loop around it does not change.
struct TripCount {
  enum class Until : std::uint8_t { zero, not_negative, positive, not_positive, negative };
  Linear distance, step;
  Until until = Until::zero;
  bool tested_first = false;  // the test comes before the body: k iterations are complete when it is met, not k + 1
  Linear tested = {};         // `distance` + k * `step`, in terms of the inner loop's registers at its header

  /// The iterations of a visit, for a thread at `around`, a moment of the loop around; nullopt if its registers do not
  /// tell, or if a number overflows before the condition is met.
  [[nodiscard]] std::optional<double> at(const LoopMoment& around) const;
  /// The completed iterations of this visit, for a thread at `inside`, a moment of the inner loop, and at `around` at
  /// once: 0 to at(around). nullopt if its registers do not tell, or contradict each other.
  [[nodiscard]] std::optional<double> done(const LoopMoment& inside, const LoopMoment& around) const;
};

/// The registers that give the trip count: those of the loop around, or those that the inner loop does not change, with
/// counters that start at constants. In the second case `around` of the functions above is a moment of the inner loop.
enum class TripsBy : std::uint8_t { around, inside };
/// nullopt if the loop has several exits, or an exit or entry that is not understood, or if visits differ, or if an
/// iteration of the loop around may skip it.
[[nodiscard]] std::optional<TripCount> trip_count(const ControlFlow& flow, const NaturalLoop& inner,
                                                  const LoopCounters& inner_counters, const NaturalLoop& outer,
                                                  const LoopCounters& outer_counters, const ReadBytes& read,
                                                  TripsBy by = TripsBy::around);

/// The value that the branch at the end of `block` tests, as a form of the registers at the header of the counters'
/// loop; nullopt if it is not linear.
[[nodiscard]] std::optional<Linear> tested_difference(const ControlFlow& flow, const LoopCounters& counters,
                                                      const Block& block, const ReadBytes& read);

}  // namespace crosstalk::symbolizer
