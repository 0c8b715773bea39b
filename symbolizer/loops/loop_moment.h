// SPDX-License-Identifier: Apache-2.0
// A thread's visit of a loop by its registers, and the reader for one address. Samples hit the same few addresses again
// and again, so a reader does once the work that depends on the address alone.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "symbolizer/cfg/register_effects.h"

namespace crosstalk::symbolizer {

/// A thread's position in its visit of a loop, by its registers. Bits are those of `Register`.
struct LoopMoment {
  std::uint16_t fixed = 0;                               // registers that an iteration leaves as they were
  std::uint16_t counters = 0;                            // registers that it moves by `step`
  std::uint16_t narrow = 0;                              // of `counters`: known modulo 2^32 only
  std::array<std::uint64_t, general_registers> value{};  // of both kinds, when the header was last passed
  std::array<std::int64_t, general_registers> step{};    // of counters, never 0
  [[nodiscard]] bool has(std::uint16_t mask, std::size_t reg) const { return (mask >> reg & 1U) != 0; }
};

/// A loop's registers, as LoopCounters finds them; `step` is a form of fixed registers.
struct LoopRegisters {
  std::uint16_t fixed = 0, counters = 0;
  std::array<Linear, general_registers> step{};
};

/// Immutable; safe to share between threads.
class MomentReader {
 public:
  /// `forms`: registers at the address, as forms of those at the last passage of the header.
  MomentReader(const LoopRegisters& loop, const RegisterForms& forms);
  /// For a thread interrupted at that address.
  [[nodiscard]] LoopMoment read(const Registers& registers) const;

 private:
  struct Term {
    std::size_t reg = 0;
    std::int32_t factor = 0;
  };
  struct Sum {  // over fixed registers of a moment, modulo 2^64
    std::uint64_t constant = 0;
    std::vector<Term> terms;
    [[nodiscard]] std::uint64_t at(const LoopMoment& moment) const;
  };
  struct Fixed {
    std::size_t reg = 0, holder = 0;  // the register, and the one that holds its value plus a constant
    std::uint64_t more = 0;
  };
  struct Counter {
    std::size_t reg = 0, holder = 0;
    Sum more, step;
    bool narrow = false;
  };
  [[nodiscard]] static Sum sum_of(const Linear& form, std::size_t but);
  void find_fixed(const LoopRegisters& loop, const RegisterForms& forms);
  void find_counter(const LoopRegisters& loop, const RegisterForms& forms, std::size_t reg);

  std::uint16_t known_ = 0;  // registers of fixed_
  std::vector<Fixed> fixed_;
  std::vector<Counter> counters_;
};

/// True if a form needs only registers of `fixed`, and `but`.
[[nodiscard]] bool on_fixed_only(const Linear& form, std::size_t but, std::uint16_t fixed);

}  // namespace crosstalk::symbolizer
