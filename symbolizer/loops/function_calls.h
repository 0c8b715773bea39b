// SPDX-License-Identifier: Apache-2.0
// Calls of a function and calls within a loop, as machine code. They connect the visits of a function's loop with the
// counter of a loop that calls the function, even if the visits are short.
#pragma once

#include <cstdint>
#include <optional>

#include "symbolizer/loops/trip_count.h"

namespace crosstalk::symbolizer {

/// A function's outermost loop that each of its calls enters.
struct VisitOfCall {
  TripCount trips;
  TripsBy by = TripsBy::around;  // the registers that the function was called with, or the loop's own
  std::uint16_t asked = 0;       // the registers at the call that decide whether, or how long, it goes round
};

/// Immutable. Its arguments must outlive it.
class FunctionCalls {
 public:
  FunctionCalls(const ControlFlow& flow, const LoopNest& nest, ReadBytes read);

  /// The registers that the function's own instructions leave unchanged; nullopt if it calls others or goes on
  /// elsewhere.
  [[nodiscard]] std::optional<std::uint16_t> kept() const { return kept_; }
  /// Reads the registers at the function's call, for threads interrupted before the instruction at `address`: the fixed
  /// ones of a moment.
  [[nodiscard]] std::optional<MomentReader> reader_at(std::uint64_t address) const;
  /// nullopt if a call may bypass the loop, or if the call does not determine the number of iterations.
  [[nodiscard]] std::optional<VisitOfCall> visit(std::uint32_t loop, const LoopCounters& counters) const;

 private:
  [[nodiscard]] std::optional<std::uint16_t> registers_kept() const;
  [[nodiscard]] std::optional<std::uint16_t> asked_before(const NaturalLoop& loop) const;

  const ControlFlow& flow_;
  const LoopNest& nest_;
  ReadBytes read_;
  NaturalLoop whole_;  // the function, as if its end led to its begin
  std::optional<LoopCounters> registers_;
  std::optional<std::uint16_t> kept_;
};

}  // namespace crosstalk::symbolizer
