// SPDX-License-Identifier: Apache-2.0
// The basic induction variables of a loop in integer registers (Aho et al., "Compilers", 9.1.6): on each way of an
// iteration they change by the same step from header to header.
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
  /// `flow` and the bytes that `read` returns must outlive this.
  LoopCounters(const ControlFlow& flow, const NaturalLoop& loop, ReadBytes read);
  /// Treats a whole function as a loop: its fixed registers have their values at the call.
  [[nodiscard]] static LoopCounters since_call(const ControlFlow& flow, const NaturalLoop& whole, ReadBytes read);

  /// Reads registers of threads interrupted before the instruction at `address`, a module address in the loop, inner
  /// loops included. nullopt: no instruction of the loop begins there.
  [[nodiscard]] std::optional<MomentReader> reader_at(std::uint64_t address) const;
  [[nodiscard]] bool has_counters() const { return registers_.counters != 0; }

  [[nodiscard]] bool is_fixed(std::size_t reg) const { return (registers_.fixed >> reg & 1U) != 0; }
  [[nodiscard]] bool is_fixed(const Linear& form) const { return (form.registers() & ~registers_.fixed) == 0; }
  /// The change of `reg` in an iteration, as a form of fixed registers; nullopt if it is no counter.
  [[nodiscard]] std::optional<Linear> step(std::size_t reg) const;
  /// Registers after the last instruction of a block, as forms of those at the header.
  [[nodiscard]] std::optional<RegisterForms> behind(std::uint32_t block) const;
  /// Registers at `address`, as forms of those at the last passage of the header.
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
