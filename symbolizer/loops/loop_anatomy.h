// SPDX-License-Identifier: Apache-2.0
// The loops of one function as machine code: their counters, and the instructions of an iteration of each. Computes
// each part when it is first requested.
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

/// The instructions that one iteration executes itself, in order, without those of inner loops.
struct Way {
  std::vector<std::uint64_t> addresses;             // module addresses
  std::vector<std::span<const std::uint8_t>> code;  // of each, which may go on behind it
  /// Indices of the jumps that may leave the loop, or lead to an exit without coming back to this way.
  std::vector<std::size_t> decisions = {};
};

/// Loops have their numbers in FunctionLoops. Not thread-safe.
class LoopAnatomy {
 public:
  /// `flow` and the bytes that `read` returns must outlive this.
  LoopAnatomy(const ControlFlow& flow, ReadBytes read);

  [[nodiscard]] std::uint64_t function_begin() const { return flow_.range.begin; }
  [[nodiscard]] std::size_t loops() const { return nest_.loops.size(); }
  /// The innermost loop that holds `address`; Loop::no_parent outside all loops.
  [[nodiscard]] std::uint32_t innermost(std::uint64_t address) const;
  /// The begin of the instruction that holds `address`; `address` itself if none is known.
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
  /// The number of iterations of each visit from the loop around, if it is the same for all.
  [[nodiscard]] const std::optional<TripCount>& trips(std::uint32_t loop);
  /// All ways round a loop, from its header to a jump back, without inner loops. Empty if there are too many, or if the
  /// loop has too many paths to search.
  [[nodiscard]] const std::vector<Way>& ways(std::uint32_t loop);
  /// Tells if a thread at `address` in `loop` may be spinning: going round the loop only to look for another thread's
  /// store (waiting.h).
  [[nodiscard]] Waiting waits_at(std::uint32_t loop, std::uint64_t address);
  /// The register that holds the last value of the load at `address` everywhere in `loop`; nullopt if another
  /// instruction writes it, too, or if it is no plain load.
  [[nodiscard]] std::optional<LoadedRegister> loaded_at(std::uint32_t loop, std::uint64_t address);

  /// The calls of the function itself.
  [[nodiscard]] const FunctionCalls& calls();
  /// Registers after an iteration of `loop`, as forms of those before it, if each iteration makes the call that returns
  /// to `behind` once and the callee keeps the registers of `kept`. nullopt otherwise; also if another call may have
  /// the same callee, if the loop has inner loops, or if the registers of `asked` may differ from call to call.
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
