// SPDX-License-Identifier: Apache-2.0
// A word of a thread's state that counts its exchanges of a line: a loop's counter, seen at traps.
//
// A trap takes microseconds, so what is watched runs slower than what is not: a rate by the clock would be wrong for
// all but slow exchanges. A counter of the program's own is slowed down with it. Where it is always the same step
// further from one taking of a line to the next, exchanges and steps go together, and its way over the whole run tells
// how many exchanges there were, most of them unwatched.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attribution/counts/trap_states.h"

namespace crosstalk::attribution {

/// Where a thread stood at a trap. Refers to the states.
class Standing {
 public:
  Standing(const TrapStates& states, std::uint32_t row) : states_(&states), row_(row) {}
  [[nodiscard]] std::uint64_t time_ns() const { return states_->time_ns(row_); }
  /// Its stack pointer.
  [[nodiscard]] std::uint64_t stack() const { return word(static_cast<std::size_t>(Register::rsp)); }
  /// Words that are known are those below.
  [[nodiscard]] std::size_t words() const { return states_->words(row_); }
  /// Of a known one.
  [[nodiscard]] std::uint64_t word(std::size_t index) const { return states_->word(row_, index); }

 private:
  const TrapStates* states_;
  std::uint32_t row_;
};

/// From one taking of a line by a thread at an instruction to its next at the same, whatever it took elsewhere between.
struct Cycle {
  const TrapStates* states = nullptr;  // of that thread at that instruction
  std::uint32_t from = 0, to = 0;      // rows of them
  std::uint32_t exchanges = 0;         // communications seen after the first taking, up to the second
  std::uint32_t runs = 0;              // runs of owners from the one to the other
  [[nodiscard]] Standing begin() const { return {*states, from}; }
  [[nodiscard]] Standing end() const { return {*states, to}; }
  [[nodiscard]] std::uint64_t length_ns() const { return states->time_ns(to) - states->time_ns(from); }
};

struct ExchangeClock {
  std::size_t word = 0;
  std::int64_t step = 0;     // of most cycles, never 0
  std::uint64_t cycles = 0;  // that tell of this word, with those that are like none
  std::uint64_t alike = 0;   // of them, with that step and as many exchanges as most, or as many times both
  double usual = 0;          // exchanges a step, in those
  double exchanges = 0;      // a step, over all that moved by whole steps
};
inline constexpr std::uint64_t least_cycles = 8;
inline constexpr double least_alike = 0.9;  // of the cycles

/// Whether a part of the cycles that tell of the clock's word are alike.
[[nodiscard]] inline bool is_alike(const ExchangeClock& clock, double least) {
  return static_cast<double>(clock.alike) >= least * static_cast<double>(clock.cycles);
}
/// Words that are the same step further in at least this part of the cycles, 0.5..1, the most regular first; empty for
/// fewer than `least_cycles` cycles. `unlike` more cycles were not seen to their end and are like none.
[[nodiscard]] std::vector<ExchangeClock> exchange_clocks(std::span<const Cycle> cycles, double least = least_alike,
                                                         std::uint64_t unlike = 0);

/// A clock, read.
struct Reading {
  std::uint64_t time_ns = 0, value = 0;
};
/// A clock's readings where a thread stood, in the frame that most are in (`own`), and those of the same thread at
/// other instructions where the word is the same variable: at least three of an instruction's readings lie between own
/// ones, in the same frame, and none of them is off by more than a step, which is what lies between two places in one
/// iteration. All are by time.
[[nodiscard]] std::vector<Reading> with_agreeing(const ExchangeClock& clock, std::span<const Standing> own,
                                                 std::span<const std::span<const Standing>> others);

/// Steps of a clock over all the times at which it was read.
struct Advance {
  double steps = 0;                        // seen
  double net = 0;                          // from the first reading to the last, whatever was between
  std::uint64_t begin_ns = 0, end_ns = 0;  // first and last seen
  double lost_ns = 0;                      // in between, where it did not go on by whole steps: it was set anew
  double widest = 0;                       // part of the steps in the gap with the most of them
  double widest_time = 0;                  // and that gap's part of the time
  double before = -1;                      // steps from 0 to the first reading; below 0: it does not count up from 0
  double unevenness = 0;                   // variance of the steps in a time, squared steps a ns
};
/// `readings` are by time. nullopt for fewer than two.
[[nodiscard]] std::optional<Advance> advance_of(const ExchangeClock& clock, std::span<const Reading> readings);

}  // namespace crosstalk::attribution
