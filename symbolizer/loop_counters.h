// SPDX-License-Identifier: Apache-2.0
// The basic induction variables of a loop that live in integer registers (Aho et al., "Compilers", 9.1.6): each
// passage of the header finds them a constant step further, by whatever way the iteration went.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "symbolizer/natural_loops.h"
#include "symbolizer/register_effects.h"

namespace crosstalk::symbolizer {

/// What a thread's registers, seen inside a loop, say of its visit there. Bits are those of `Register`.
struct LoopMoment {
  std::uint16_t fixed = 0;                               // registers that an iteration leaves as they were
  std::uint16_t counters = 0;                            // registers that it moves by `step`
  std::uint16_t narrow = 0;                              // of `counters`: known modulo 2^32 only
  std::array<std::uint64_t, general_registers> value{};  // of both kinds, when the header was last passed
  std::array<std::int64_t, general_registers> step{};    // of counters, never 0
  [[nodiscard]] bool has(std::uint16_t mask, std::size_t reg) const { return (mask >> reg & 1U) != 0; }
};

class LoopCounters {
 public:
  /// `flow` and what `read` gives must outlive this.
  LoopCounters(const ControlFlow& flow, const NaturalLoop& loop, ReadBytes read);

  /// For a thread interrupted before the instruction at `address`, a module address in the loop, inner loops
  /// included. nullopt: no instruction of the loop begins there.
  [[nodiscard]] std::optional<LoopMoment> at(std::uint64_t address, const Registers& registers) const;
  [[nodiscard]] bool has_counters() const { return counters_ != 0; }

  [[nodiscard]] bool is_fixed(std::size_t reg) const { return (fixed_ >> reg & 1U) != 0; }
  /// By how much `reg` moves an iteration, in terms of fixed registers; nullopt when it is no counter.
  [[nodiscard]] std::optional<Linear> step(std::size_t reg) const;
  /// Registers behind the last instruction of a block, in terms of those at the header.
  [[nodiscard]] std::optional<RegisterForms> behind(std::uint32_t block) const;
  /// Registers at `address`, in terms of what they were at the last passage of the header.
  [[nodiscard]] std::optional<RegisterForms> forms_at(std::uint64_t address) const;

 private:
  void solve(const NaturalLoop& loop);
  void read_fixed(const RegisterForms& forms, const Registers& registers, LoopMoment& moment) const;
  void read_counter(std::size_t reg, const RegisterForms& forms, const Registers& registers, LoopMoment& moment) const;
  void find_counters(const NaturalLoop& loop);
  [[nodiscard]] RegisterForms behind(std::uint32_t block, RegisterForms forms) const;
  [[nodiscard]] bool on_fixed_only(const Linear& form, std::size_t but, std::uint16_t fixed) const;

  const ControlFlow& flow_;
  ReadBytes read_;
  std::map<std::uint32_t, RegisterForms> before_;  // by block of the loop
  // What at() has worked out: samples fall on the same few addresses again and again. Not safe for several threads.
  mutable std::unordered_map<std::uint64_t, std::optional<RegisterForms>> forms_seen_;
  std::uint16_t fixed_ = 0, counters_ = 0;
  std::array<Linear, general_registers> step_{};
};

}  // namespace crosstalk::symbolizer
