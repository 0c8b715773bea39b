// SPDX-License-Identifier: Apache-2.0
// Calls of a function and calls that a loop makes, as machine code: what brings the visits of a function's loop
// together with the counter of a loop that calls the function, however short the visits are.
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

/// Immutable. What it is made of must outlive it.
class FunctionCalls {
 public:
  FunctionCalls(const ControlFlow& flow, const LoopNest& nest, ReadBytes read);

  /// The registers that the function leaves as they were, by its own instructions; nullopt where it calls others or
  /// goes on elsewhere.
  [[nodiscard]] std::optional<std::uint16_t> kept() const { return kept_; }
  /// Registers when the function was called, of threads interrupted before the instruction at `address`: the fixed ones
  /// of a moment.
  [[nodiscard]] std::optional<MomentReader> reader_at(std::uint64_t address) const;
  /// nullopt where a call may pass by the loop, or how long it goes round is not told by the call.
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
