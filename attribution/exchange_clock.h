// SPDX-License-Identifier: Apache-2.0
// A word of a thread's state that counts its exchanges of a line: a loop's counter, seen at traps.
//
// A trap takes microseconds, so what is watched runs slower than what is not: a rate by the clock would be wrong for
// all but slow exchanges. A counter of the program's own is slowed down with it. Where it is always the same step
// further from one taking of a line to the next, exchanges and steps go together, and its way over the whole run tells
// how many exchanges there were, most of them unwatched.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "profile/model.h"

namespace crosstalk::attribution {

/// Registers but rip, then the lowest words of the stack: where a counter may be.
inline constexpr std::size_t state_registers = register_count - 1;
inline constexpr std::size_t state_words = state_registers + profile::trap_frame_words;

/// Where a thread stood at a trap.
struct Standing {
  std::uint64_t time_ns = 0;
  std::array<std::uint64_t, state_words> word{};
  bool has_frame = false;                     // the words of the stack are known
  [[nodiscard]] std::uint64_t stack() const;  // its stack pointer
};
[[nodiscard]] Standing standing_at(const profile::TrapRow& trap);

/// From one taking of a line by a thread to its next, at the same instruction.
struct Cycle {
  Standing begin, end;
  std::uint32_t exchanges = 0;  // communications seen after `begin`, up to `end`
};

struct ExchangeClock {
  std::size_t word = 0;
  std::int64_t step = 0;     // of most cycles, never 0
  std::uint64_t cycles = 0;  // that tell of this word
  std::uint64_t alike = 0;   // of them, with that step and as many exchanges as most
  double usual = 0;          // exchanges a step, in those
  double exchanges = 0;      // a step, over all that moved by whole steps
};
inline constexpr std::uint64_t least_cycles = 8;
inline constexpr double least_alike = 0.9;  // of the cycles

/// Words that are the same step further in nearly all cycles, the most regular first; empty for fewer than
/// `least_cycles` cycles.
[[nodiscard]] std::vector<ExchangeClock> exchange_clocks(std::span<const Cycle> cycles, double least = least_alike);

/// `own` readings of a clock, and those of the same thread at other instructions where the word is the same variable:
/// at least three of an instruction's readings lie between own ones, in the same frame, and none of them is off by
/// more than a step, which is what lies between two places in one iteration. All are by time.
[[nodiscard]] std::vector<Standing> with_agreeing(const ExchangeClock& clock, std::vector<Standing> own,
                                                  std::span<const std::vector<Standing>> others);

/// Steps of a word over all the times at which a thread was seen at one instruction.
struct Way {
  double steps = 0;                        // seen
  double net = 0;                          // from the first reading to the last, whatever was between
  std::uint64_t begin_ns = 0, end_ns = 0;  // first and last seen
  double lost_ns = 0;                      // in between, where it did not go on by whole steps: it was set anew
  double widest = 0;                       // part of the steps in the gap with the most of them
  double widest_time = 0;                  // and that gap's part of the time
};
/// `standings` are of one thread at one instruction, by time. Those in other frames than most are left out. nullopt
/// when fewer than two are left.
[[nodiscard]] std::optional<Way> way_of(const ExchangeClock& clock, std::span<const Standing> standings);

}  // namespace crosstalk::attribution
