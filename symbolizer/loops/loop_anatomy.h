// SPDX-License-Identifier: Apache-2.0
// The loops of one function as machine code: their counters, and what an iteration of each executes. Each is worked
// out when it is first asked for.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "symbolizer/loops/iteration_work.h"
#include "symbolizer/loops/loop_counters.h"
#include "symbolizer/loops/trip_count.h"

namespace crosstalk::symbolizer {

/// Loops have the numbers that they have in FunctionLoops. Not thread-safe.
class LoopAnatomy {
 public:
  /// `flow` must outlive this; `read` gives bytes of the module that do, too.
  LoopAnatomy(const ControlFlow& flow, ReadBytes read);

  [[nodiscard]] std::uint64_t function_begin() const { return flow_.range.begin; }
  [[nodiscard]] std::size_t loops() const { return nest_.loops.size(); }
  /// The innermost loop that holds `address`; Loop::no_parent outside all loops.
  [[nodiscard]] std::uint32_t innermost(std::uint64_t address) const;
  /// Loop::no_parent for an outermost one.
  [[nodiscard]] std::uint32_t parent(std::uint32_t loop) const { return nest_.loops[loop].parent; }
  /// Module address of its header.
  [[nodiscard]] std::uint64_t header(std::uint32_t loop) const { return flow_.blocks[nest_.loops[loop].header].begin; }
  [[nodiscard]] const LoopCounters& counters(std::uint32_t loop);
  [[nodiscard]] const IterationWork& work(std::uint32_t loop);
  /// How many iterations each visit from the loop around it has, if that is the same for all.
  [[nodiscard]] const std::optional<TripCount>& trips(std::uint32_t loop);

 private:
  struct Part {
    std::unique_ptr<LoopCounters> counters;
    std::optional<IterationWork> work;
    std::optional<std::optional<TripCount>> trips;
  };
  const ControlFlow& flow_;
  ReadBytes read_;
  LoopNest nest_;
  std::vector<Part> parts_;  // by loop
};

}  // namespace crosstalk::symbolizer
