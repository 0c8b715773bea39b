// SPDX-License-Identifier: Apache-2.0
#include "attribution/exchange_clock.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

namespace crosstalk::attribution {
namespace {

constexpr auto stack_pointer = static_cast<std::size_t>(Register::rsp);

bool knows(const Standing& standing, std::size_t word) { return word < state_registers || standing.has_frame; }

std::optional<std::int64_t> distance(const Standing& from, const Standing& to, std::size_t word) {
  if (!knows(from, word) || !knows(to, word) || from.stack() != to.stack()) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(to.word.at(word) - from.word.at(word));
}

/// Whole steps from one to the other; nullopt: none, or backwards, or not known.
std::optional<double> steps_between(const Standing& from, const Standing& to, const ExchangeClock& clock) {
  const auto way = distance(from, to, clock.word);
  if (!way || *way == INT64_MIN || *way % clock.step != 0 || *way / clock.step < 0) {
    return std::nullopt;
  }
  const std::int64_t steps = *way / clock.step;
  return static_cast<double>(steps);
}

/// The distance that most cycles have, with the exchanges in most of them.
std::optional<ExchangeClock> clock_by(std::size_t word, std::span<const Cycle> cycles, double least) {
  std::map<std::pair<std::int64_t, std::uint32_t>, std::uint64_t> tally;
  ExchangeClock clock;
  clock.word = word;
  for (const Cycle& cycle : cycles) {
    if (const auto way = distance(cycle.begin, cycle.end, word)) {
      ++tally[{*way, cycle.exchanges}];
      ++clock.cycles;
    }
  }
  for (const auto& [kind, count] : tally) {
    if (kind.second > 0 && count > clock.alike) {
      clock.alike = count;
      clock.step = kind.first;
      clock.usual = kind.second;
    }
  }
  const bool regular = static_cast<double>(clock.alike) >= least * static_cast<double>(clock.cycles);
  if (clock.cycles < least_cycles || !regular || clock.step == 0 || clock.step == INT64_MIN) {
    return std::nullopt;
  }
  double steps = 0;
  for (const Cycle& cycle : cycles) {
    if (const auto whole = steps_between(cycle.begin, cycle.end, clock); whole && *whole > 0) {
      steps += *whole;
      clock.exchanges += cycle.exchanges;
    }
  }
  clock.exchanges /= steps;
  return clock;
}

/// The stack pointer of most.
std::uint64_t usual_frame(std::span<const Standing> standings) {
  std::map<std::uint64_t, std::size_t> tally;
  for (const Standing& standing : standings) {
    ++tally[standing.stack()];
  }
  return std::max_element(tally.begin(), tally.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

bool earlier(const Standing& a, const Standing& b) { return a.time_ns < b.time_ns; }

/// Steps from one to the other, forwards or backwards.
double progress(const Standing& from, const Standing& to, const ExchangeClock& clock) {
  return static_cast<double>(static_cast<std::int64_t>(to.word.at(clock.word) - from.word.at(clock.word))) /
         static_cast<double>(clock.step);
}

/// Do readings at another instruction lie between those of `own`, which are by time?
bool agrees(const ExchangeClock& clock, std::span<const Standing> own, std::span<const Standing> other) {
  constexpr std::size_t least_between = 3;
  std::size_t between = 0;
  for (const Standing& standing : other) {
    const auto next = std::upper_bound(own.begin(), own.end(), standing, earlier);
    if (next == own.begin() || next == own.end()) {
      continue;
    }
    if (progress(*std::prev(next), standing, clock) < -1 || progress(standing, *next, clock) < -1) {
      return false;
    }
    ++between;
  }
  return between >= least_between;
}

}  // namespace

std::uint64_t Standing::stack() const { return word.at(stack_pointer); }

Standing standing_at(const profile::TrapRow& trap) {
  Standing standing;
  standing.time_ns = trap.time_ns;
  std::copy_n(trap.registers.value.begin(), state_registers, standing.word.begin());
  if (trap.frame) {
    std::copy(trap.frame->begin(), trap.frame->end(), standing.word.begin() + state_registers);
    standing.has_frame = true;
  }
  return standing;
}

std::vector<ExchangeClock> exchange_clocks(std::span<const Cycle> cycles, double least) {
  std::vector<ExchangeClock> clocks;
  for (std::size_t word = 0; word < state_words; ++word) {
    if (word == stack_pointer) {
      continue;
    }
    if (const auto clock = clock_by(word, cycles, least)) {
      clocks.push_back(*clock);
    }
  }
  std::stable_sort(clocks.begin(), clocks.end(),
                   [](const ExchangeClock& a, const ExchangeClock& b) { return a.alike > b.alike; });
  return clocks;
}

std::vector<Standing> with_agreeing(const ExchangeClock& clock, std::vector<Standing> own,
                                    std::span<const std::vector<Standing>> others) {
  if (own.size() < 2) {
    return own;
  }
  const std::uint64_t frame = usual_frame(own);
  const auto elsewhere = [&](const Standing& standing) {
    return standing.stack() != frame || !knows(standing, clock.word);
  };
  std::erase_if(own, elsewhere);
  std::vector<Standing> all = own;
  for (std::vector<Standing> other : others) {
    std::erase_if(other, elsewhere);
    if (agrees(clock, own, other)) {
      all.insert(all.end(), other.begin(), other.end());
    }
  }
  std::stable_sort(all.begin(), all.end(), earlier);
  for (std::size_t i = 1; i < all.size(); ++i) {
    const double back = -progress(all[i - 1], all[i], clock);
    if (back > 0 && back <= 1) {  // another place in the same iteration
      all[i].word.at(clock.word) = all[i - 1].word.at(clock.word);
    }
  }
  return all;
}

std::optional<Way> way_of(const ExchangeClock& clock, std::span<const Standing> standings) {
  std::vector<const Standing*> seen;
  const std::uint64_t frame = standings.empty() ? 0 : usual_frame(standings);
  for (const Standing& standing : standings) {
    if (standing.stack() == frame && knows(standing, clock.word)) {
      seen.push_back(&standing);
    }
  }
  if (seen.size() < 2) {
    return std::nullopt;
  }
  Way way{0, progress(*seen.front(), *seen.back(), clock), seen.front()->time_ns, seen.back()->time_ns, 0, 0, 0};
  double widest_ns = 0;
  for (std::size_t i = 1; i < seen.size(); ++i) {
    const auto ns = static_cast<double>(seen[i]->time_ns - seen[i - 1]->time_ns);
    const auto steps = steps_between(*seen[i - 1], *seen[i], clock);
    way.lost_ns += steps ? 0 : ns;
    way.steps += steps.value_or(0);
    if (steps.value_or(0) > way.widest) {
      way.widest = *steps;
      widest_ns = ns;
    }
  }
  const auto all_ns = static_cast<double>(way.end_ns - way.begin_ns);
  way.widest_time = all_ns > 0 ? widest_ns / all_ns : 0;
  way.widest = way.steps > 0 ? way.widest / way.steps : 0;
  return way;
}

}  // namespace crosstalk::attribution
