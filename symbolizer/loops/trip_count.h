// SPDX-License-Identifier: Apache-2.0
// How many iterations a counted inner loop runs at each visit, from its only exit and from how it is entered.
#pragma once

#include <cstdint>
#include <optional>

#include "symbolizer/loops/loop_counters.h"

namespace crosstalk::symbolizer {

/// An inner loop goes on until `distance` + k * `step`, k = 0, 1, ... meets the condition; both are in terms of
/// registers that the loop around it leaves alone.
struct TripCount {
  enum class Until : std::uint8_t { zero, not_negative, positive, not_positive, negative };
  Linear distance, step;
  Until until = Until::zero;
  bool tested_first = false;  // the test comes before the body: k iterations are complete when it is met, not k + 1
  Linear tested = {};         // `distance` + k * `step`, in terms of the inner loop's registers at its header

  /// For a thread that is at `around`, a moment of the loop around; nullopt when its registers do not tell, or when
  /// the condition would not be met before a number overflows.
  [[nodiscard]] std::optional<double> at(const LoopMoment& around) const;
  /// How many iterations of this visit are complete for a thread that is at `inside`, a moment of the inner loop, and
  /// at `around` at once: 0 to at(around). nullopt when its registers do not tell, or contradict each other.
  [[nodiscard]] std::optional<double> done(const LoopMoment& inside, const LoopMoment& around) const;
};

/// Whose registers tell how often a visit goes round: those of the loop around, or what the inner loop finds and leaves
/// alone, where its counters begin with numbers; then `around` of the functions above is a moment of the inner loop.
enum class TripsBy : std::uint8_t { around, inside };
/// nullopt when the loop has several exits, or its exit or its entry is not understood, or visits differ, or not every
/// iteration of the loop around makes one.
[[nodiscard]] std::optional<TripCount> trip_count(const ControlFlow& flow, const NaturalLoop& inner,
                                                  const LoopCounters& inner_counters, const NaturalLoop& outer,
                                                  const LoopCounters& outer_counters, const ReadBytes& read,
                                                  TripsBy by = TripsBy::around);

/// What the branch at the end of `block` asks, in terms of the registers at the header of the counters' loop; nullopt
/// where that is not linear.
[[nodiscard]] std::optional<Linear> tested_difference(const ControlFlow& flow, const LoopCounters& counters,
                                                      const Block& block, const ReadBytes& read);

}  // namespace crosstalk::symbolizer
