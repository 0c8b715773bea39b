// SPDX-License-Identifier: Apache-2.0
// The basic induction variables of a loop that live in integer registers (Aho et al., "Compilers", 9.1.6): each
// passage of the header finds them a constant step further, by whatever way the iteration went.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "symbolizer/loops/loop_moment.h"
#include "symbolizer/loops/natural_loops.h"

namespace crosstalk::symbolizer {

class LoopCounters {
 public:
  /// `flow` and what `read` gives must outlive this.
  LoopCounters(const ControlFlow& flow, const NaturalLoop& loop, ReadBytes read);
  /// Of a whole function, as if it were a loop: its fixed registers are those that it was called with.
  [[nodiscard]] static LoopCounters since_call(const ControlFlow& flow, const NaturalLoop& whole, ReadBytes read);

  /// For threads interrupted before the instruction at `address`, a module address in the loop, inner loops
  /// included. nullopt: no instruction of the loop begins there.
  [[nodiscard]] std::optional<MomentReader> reader_at(std::uint64_t address) const;
  [[nodiscard]] bool has_counters() const { return registers_.counters != 0; }

  [[nodiscard]] bool is_fixed(std::size_t reg) const { return (registers_.fixed >> reg & 1U) != 0; }
  /// By how much `reg` moves an iteration, in terms of fixed registers; nullopt when it is no counter.
  [[nodiscard]] std::optional<Linear> step(std::size_t reg) const;
  /// Registers behind the last instruction of a block, in terms of those at the header.
  [[nodiscard]] std::optional<RegisterForms> behind(std::uint32_t block) const;
  /// Registers at `address`, in terms of what they were at the last passage of the header.
  [[nodiscard]] std::optional<RegisterForms> forms_at(std::uint64_t address) const;

 private:
  LoopCounters(const ControlFlow& flow, ReadBytes read);
  void solve(const NaturalLoop& loop);
  void find_counters(const NaturalLoop& loop);
  [[nodiscard]] RegisterForms behind(std::uint32_t block, RegisterForms forms) const;

  const ControlFlow& flow_;
  ReadBytes read_;
  std::map<std::uint32_t, RegisterForms> before_;  // by block of the loop
  LoopRegisters registers_;
};

}  // namespace crosstalk::symbolizer
