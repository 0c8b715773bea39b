// SPDX-License-Identifier: Apache-2.0
// A word of a thread's state that counts its exchanges of a line: a loop's counter, seen at traps.
//
// A trap takes microseconds, so watched code runs slower than other code: a rate by the clock would be wrong for all
// but slow exchanges. A counter of the program's own slows down with the code. If it advances by the same step from one
// taking of a line to the next, exchanges and steps go together, and its advance over the whole run gives the number of
// exchanges, most of them unwatched.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attribution/counts/trap_states.h"

namespace crosstalk::attribution {

/// A thread's state at a trap. Refers to the states.
class Standing {
 public:
  Standing(const TrapStates& states, std::uint32_t row) : states_(&states), row_(row) {}
  [[nodiscard]] std::uint64_t time_ns() const { return states_->time_ns(row_); }
  /// The thread's stack pointer.
  [[nodiscard]] std::uint64_t stack() const { return word(static_cast<std::size_t>(Register::rsp)); }
  /// The number of known words: words with lower indices are known.
  [[nodiscard]] std::size_t words() const { return states_->words(row_); }
  /// The value of a known word.
  [[nodiscard]] std::uint64_t word(std::size_t index) const { return states_->word(row_, index); }

 private:
  const TrapStates* states_;
  std::uint32_t row_;
};

/// From one taking of a line by a thread at an instruction to its next at the same one, ignoring others in between.
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
  std::uint64_t cycles = 0;  // with this word known, irregular ones included
  std::uint64_t alike = 0;   // of them, with that step and as many exchanges as most, or as many times both
  double usual = 0;          // exchanges a step, in those
  double exchanges = 0;      // a step, over all that moved by whole steps
};
inline constexpr std::uint64_t least_cycles = 8;
inline constexpr double least_alike = 0.9;  // of the cycles

/// True if at least a part `least` of the cycles that tell of the clock's word are alike.
[[nodiscard]] inline bool is_alike(const ExchangeClock& clock, double least) {
  return static_cast<double>(clock.alike) >= least * static_cast<double>(clock.cycles);
}
/// Words that advance by the same step in at least this part of the cycles, 0.5..1, the most regular first; empty for
/// fewer than `least_cycles` cycles. `unlike` more cycles were not seen to their end and count as irregular.
[[nodiscard]] std::vector<ExchangeClock> exchange_clocks(std::span<const Cycle> cycles, double least = least_alike,
                                                         std::uint64_t unlike = 0);

/// One reading of a clock.
struct Reading {
  std::uint64_t time_ns = 0, value = 0;
};
/// A clock's readings at a thread's traps, by time. Takes those in the frame of most readings (`own`), and readings of
/// the same thread at other instructions if the word is the same variable there: at least three readings of the
/// instruction lie between own ones, in the same frame, and none is off by more than a step, the difference between two
/// places in one iteration.
[[nodiscard]] std::vector<Reading> with_agreeing(const ExchangeClock& clock, std::span<const Standing> own,
                                                 std::span<const std::span<const Standing>> others);

/// The steps of a clock over all its readings.
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
