// SPDX-License-Identifier: Apache-2.0
// The loops of one function as machine code: their counters, and what an iteration of each executes. Each is worked
// out when it is first asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "symbolizer/loops/function_calls.h"
#include "symbolizer/loops/iteration_work.h"
#include "symbolizer/loops/loop_counters.h"
#include "symbolizer/loops/trip_count.h"
#include "symbolizer/loops/waiting.h"

namespace crosstalk::symbolizer {

/// The instructions that one iteration executes itself, in order, those of loops inside left out.
struct Way {
  std::vector<std::uint64_t> addresses;             // module addresses
  std::vector<std::span<const std::uint8_t>> code;  // of each, which may go on behind it
  /// By index: the jumps at which the loop may be left, or go where it is left without coming back to this way.
  std::vector<std::size_t> decisions = {};
};

/// Loops have the numbers that they have in FunctionLoops. Not thread-safe.
class LoopAnatomy {
 public:
  /// `flow` must outlive this; `read` gives bytes of the module that do, too.
  LoopAnatomy(const ControlFlow& flow, ReadBytes read);

  [[nodiscard]] std::uint64_t function_begin() const { return flow_.range.begin; }
  [[nodiscard]] std::size_t loops() const { return nest_.loops.size(); }
  /// The innermost loop that holds `address`; Loop::no_parent outside all loops.
  [[nodiscard]] std::uint32_t innermost(std::uint64_t address) const;
  /// Where the instruction begins that holds `address`; `address` itself where none is known.
  [[nodiscard]] std::uint64_t begin_of(std::uint64_t address) const {
    const Instruction* holding = flow_.holding(address);
    return holding != nullptr ? holding->address : address;
  }
  /// Loop::no_parent for an outermost one.
  [[nodiscard]] std::uint32_t parent(std::uint32_t loop) const { return nest_.loops[loop].parent; }
  /// Module address of its header.
  [[nodiscard]] std::uint64_t header(std::uint32_t loop) const { return flow_.blocks[nest_.loops[loop].header].begin; }
  [[nodiscard]] const LoopCounters& counters(std::uint32_t loop);
  [[nodiscard]] const IterationWork& work(std::uint32_t loop);
  /// How many iterations each visit from the loop around it has, if that is the same for all.
  [[nodiscard]] const std::optional<TripCount>& trips(std::uint32_t loop);
  /// All ways round a loop, from its header to a jump back; loops inside it are passed by. Empty where there are too
  /// many, or where the loop has too many paths to look at them all.
  [[nodiscard]] const std::vector<Way>& ways(std::uint32_t loop);
  /// Whether who executes the instruction that holds `address`, in `loop`, may go round it without getting anything
  /// done but to look whether another thread has stored (waiting.h).
  [[nodiscard]] Waiting waits_at(std::uint32_t loop, std::uint64_t address);
  /// The register that has what the load at `address` in `loop` has loaded last, wherever the loop is; nullopt where
  /// something else writes it, too, or where it is no plain load.
  [[nodiscard]] std::optional<LoadedRegister> loaded_at(std::uint32_t loop, std::uint64_t address);

  /// Of the function itself.
  [[nodiscard]] const FunctionCalls& calls();
  /// Registers behind an iteration of `loop`, in terms of those before it, where each makes the call that returns to
  /// `behind` once and the callee leaves the registers of `kept` as they were. nullopt where it is not so, where
  /// another call may have the same callee, where the loop has loops inside, or where it does not always call with the
  /// same values in the registers of `asked`.
  [[nodiscard]] std::optional<RegisterForms> around_call(std::uint32_t loop, std::uint64_t behind, std::uint16_t kept,
                                                         std::uint16_t asked);

 private:
  struct Search {
    std::vector<std::uint32_t> blocks;  // from the header on
    std::vector<Way> found;
    std::size_t steps_left;
  };
  void extend(std::uint32_t loop, Search& search);
  [[nodiscard]] std::vector<std::uint32_t> behind(std::uint32_t loop, std::uint32_t block) const;
  [[nodiscard]] Way way_through(std::span<const std::uint32_t> blocks) const;
  [[nodiscard]] bool decides(std::uint32_t loop, std::span<const std::uint32_t> way) const;
  struct Part {
    std::unique_ptr<LoopCounters> counters;
    std::optional<IterationWork> work;
    std::optional<std::optional<TripCount>> trips;
    std::optional<std::vector<Way>> ways;
  };
  const ControlFlow& flow_;
  ReadBytes read_;
  LoopNest nest_;
  std::vector<Part> parts_;  // by loop
  std::unique_ptr<FunctionCalls> calls_;
};

}  // namespace crosstalk::symbolizer
