// SPDX-License-Identifier: Apache-2.0
#include "attribution/counts/exchange_clock.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <map>

namespace crosstalk::attribution {
namespace {

constexpr auto stack_pointer = static_cast<std::size_t>(Register::rsp);

/// The number of whole steps in a distance; nullopt: no whole number, or backwards.
std::optional<double> steps_in(std::int64_t distance, std::int64_t step) {
  if (distance == INT64_MIN || distance % step != 0 || distance / step < 0) {
    return std::nullopt;
  }
  const std::int64_t steps = distance / step;
  return static_cast<double>(steps);
}

/// The number of words known at both ends of a cycle: those with lower indices.
std::size_t words_of(const Cycle& cycle) {
  const Standing begin = cycle.begin();
  const Standing end = cycle.end();
  return begin.stack() == end.stack() ? std::min(begin.words(), end.words()) : 0;
}

/// words_of() for each cycle.
std::vector<std::size_t> known_words(std::span<const Cycle> cycles) {
  std::vector<std::size_t> known;
  known.reserve(cycles.size());
  for (const Cycle& cycle : cycles) {
    known.push_back(words_of(cycle));
  }
  return known;
}

/// The words that change between traps at the cycles' instruction: others are no clocks.
std::vector<bool> moving_words(std::span<const Cycle> cycles) {
  std::vector<bool> moves(state_words, false);
  const TrapStates* last = nullptr;
  for (const Cycle& cycle : cycles) {
    for (std::size_t word = 0; cycle.states != last && word < state_words; ++word) {
      moves[word] = moves[word] || !cycle.states->is_constant(word);
    }
    last = cycle.states;
  }
  return moves;
}

/// The change of a known word in a cycle.
std::int64_t distance(const Cycle& cycle, std::size_t word) {
  return static_cast<std::int64_t>(cycle.end().word(word) - cycle.begin().word(word));
}

/// The change of a word in a cycle.
struct Kind {
  std::int64_t distance = 0;
  std::uint32_t exchanges = 0;
  auto operator<=>(const Kind&) const = default;
};

/// Candidates for the most frequent kind of a word's cycles. A kind with more than a third of all is among the two that
/// remain (Misra and Gries, "Finding repeated elements", 1982).
class Poll {
 public:
  void vote(const Kind& kind) {
    ++cycles_;
    if (kind.exchanges == 0) {
      return;
    }
    for (const std::size_t i : {0, 1}) {
      if (votes_[i] > 0 && kinds_[i] == kind) {
        ++votes_[i];
        return;
      }
    }
    for (const std::size_t i : {0, 1}) {
      if (votes_[i] == 0) {
        kinds_[i] = kind;
        votes_[i] = 1;
        return;
      }
    }
    --votes_[0], --votes_[1], ++withdrawn_;
  }
  /// An upper limit of the cycles of any kind.
  [[nodiscard]] std::uint64_t most() const { return std::max(votes_[0], votes_[1]) + withdrawn_; }
  [[nodiscard]] std::uint64_t cycles() const { return cycles_; }
  [[nodiscard]] const std::array<Kind, 2>& kinds() const { return kinds_; }

 private:
  std::array<Kind, 2> kinds_;
  std::array<std::uint64_t, 2> votes_{};
  std::uint64_t cycles_ = 0, withdrawn_ = 0;
};

/// True for a whole number of usual steps, each with the usual exchanges.
bool is_multiple(const Kind& kind, const Kind& usual) {
  const auto steps = usual.distance != 0 ? steps_in(kind.distance, usual.distance) : std::nullopt;
  return steps && *steps >= 1 && kind.exchanges == *steps * usual.exchanges;
}

bool is_alike(const Cycle& cycle, const ExchangeClock& clock) {
  const Kind usual{clock.step, static_cast<std::uint32_t>(clock.usual)};
  return is_multiple({distance(cycle, clock.word), cycle.exchanges}, usual);
}

/// The distance of most cycles, and the exchanges of most of them. Among equally frequent kinds, the least.
ExchangeClock most_frequent(std::size_t word, const Poll& poll, std::span<const Cycle> cycles,
                            std::span<const std::size_t> known) {
  std::array<std::uint64_t, 2> counts{};
  for (std::size_t i = 0; i < cycles.size(); ++i) {
    if (word < known[i] && cycles[i].exchanges > 0) {
      const Kind kind{distance(cycles[i], word), cycles[i].exchanges};
      counts[0] += kind == poll.kinds()[0] ? 1 : 0;
      counts[1] += kind == poll.kinds()[1] ? 1 : 0;
    }
  }
  const bool second = counts[1] > counts[0] || (counts[1] == counts[0] && poll.kinds()[1] < poll.kinds()[0]);
  const Kind& usual = poll.kinds()[second ? 1 : 0];
  ExchangeClock clock{word, usual.distance, poll.cycles(), 0, static_cast<double>(usual.exchanges), 0};
  for (std::size_t i = 0; i < cycles.size(); ++i) {
    clock.alike += word < known[i] && is_alike(cycles[i], clock) ? 1 : 0;
  }
  return clock;
}

/// Exchanges a step, over all cycles with whole steps.
double exchanges_a_step(const ExchangeClock& clock, std::span<const Cycle> cycles) {
  double steps = 0;
  double exchanges = 0;
  for (const Cycle& cycle : cycles) {
    const auto whole = clock.word < words_of(cycle) ? steps_in(distance(cycle, clock.word), clock.step) : std::nullopt;
    if (whole && *whole > 0) {
      steps += *whole;
      exchanges += cycle.exchanges;
    }
  }
  return exchanges / steps;
}

/// The most frequent stack pointer.
std::uint64_t usual_frame(std::span<const Standing> standings) {
  std::map<std::uint64_t, std::size_t> tally;
  for (const Standing& standing : standings) {
    ++tally[standing.stack()];
  }
  return std::max_element(tally.begin(), tally.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

std::vector<Reading> readings_in(std::uint64_t frame, std::size_t word, std::span<const Standing> standings) {
  std::vector<Reading> readings;
  for (const Standing& standing : standings) {
    if (standing.stack() == frame && word < standing.words()) {
      readings.push_back({standing.time_ns(), standing.word(word)});
    }
  }
  return readings;
}

bool earlier(const Reading& a, const Reading& b) { return a.time_ns < b.time_ns; }

std::int64_t distance(const Reading& from, const Reading& to) {
  return static_cast<std::int64_t>(to.value - from.value);
}

/// Steps between two readings, forwards or backwards.
double progress(const Reading& from, const Reading& to, const ExchangeClock& clock) {
  return static_cast<double>(distance(from, to)) / static_cast<double>(clock.step);
}

/// Variance of the steps for each ns, from the differences between successive readings.
double unevenness(const ExchangeClock& clock, std::span<const Reading> readings, double steps_a_ns) {
  double squares = 0;
  double all_ns = 0;
  for (std::size_t i = 1; i < readings.size(); ++i) {
    const auto ns = static_cast<double>(readings[i].time_ns - readings[i - 1].time_ns);
    if (const auto steps = steps_in(distance(readings[i - 1], readings[i]), clock.step)) {
      squares += std::pow(*steps - steps_a_ns * ns, 2);
      all_ns += ns;
    }
  }
  return all_ns > 0 ? squares / all_ns : 0;
}

/// True if readings at another instruction lie between those of `own`, which are by time.
bool agrees(const ExchangeClock& clock, std::span<const Reading> own, std::span<const Reading> other) {
  constexpr std::size_t least_between = 3;
  std::size_t between = 0;
  for (const Reading& reading : other) {
    const auto next = std::upper_bound(own.begin(), own.end(), reading, earlier);
    if (next == own.begin() || next == own.end()) {
      continue;
    }
    if (progress(*std::prev(next), reading, clock) < -1 || progress(reading, *next, clock) < -1) {
      return false;
    }
    ++between;
  }
  return between >= least_between;
}

}  // namespace

std::vector<ExchangeClock> exchange_clocks(std::span<const Cycle> cycles, double least, std::uint64_t unlike) {
  const std::vector<std::size_t> known = known_words(cycles);
  const std::vector<bool> moves = moving_words(cycles);
  std::vector<ExchangeClock> clocks;
  for (std::size_t word = 0; word < state_words; ++word) {
    if (word == stack_pointer || !moves[word]) {
      continue;
    }
    Poll poll;
    for (std::size_t i = 0; i < cycles.size(); ++i) {
      if (word < known[i]) {
        poll.vote({distance(cycles[i], word), cycles[i].exchanges});
      }
    }
    const bool possible = 3 * poll.most() > poll.cycles();  // else the most frequent kind is not known
    if (poll.cycles() < least_cycles || !possible) {
      continue;
    }
    ExchangeClock clock = most_frequent(word, poll, cycles, known);
    clock.cycles += unlike;
    if (is_alike(clock, least) && clock.step != 0 && clock.step != INT64_MIN) {
      clock.exchanges = exchanges_a_step(clock, cycles);
      clocks.push_back(clock);
    }
  }
  std::stable_sort(clocks.begin(), clocks.end(),
                   [](const ExchangeClock& a, const ExchangeClock& b) { return a.alike > b.alike; });
  return clocks;
}

std::vector<Reading> with_agreeing(const ExchangeClock& clock, std::span<const Standing> own,
                                   std::span<const std::span<const Standing>> others) {
  if (own.empty()) {
    return {};
  }
  const std::uint64_t frame = usual_frame(own);
  const std::vector<Reading> readings = readings_in(frame, clock.word, own);
  std::vector<Reading> all = readings;
  for (const std::span<const Standing> other : others) {
    const std::vector<Reading> there = readings_in(frame, clock.word, other);
    if (agrees(clock, readings, there)) {
      all.insert(all.end(), there.begin(), there.end());
    }
  }
  std::stable_sort(all.begin(), all.end(), earlier);
  for (std::size_t i = 1; i < all.size(); ++i) {
    const double back = -progress(all[i - 1], all[i], clock);
    if (back > 0 && back <= 1) {  // another place in the same iteration
      all[i].value = all[i - 1].value;
    }
  }
  return all;
}

std::optional<Advance> advance_of(const ExchangeClock& clock, std::span<const Reading> readings) {
  if (readings.size() < 2) {
    return std::nullopt;
  }
  const Reading& first = readings.front();
  const Reading& last = readings.back();
  Advance way;
  way.net = progress(first, last, clock);
  way.begin_ns = first.time_ns;
  way.end_ns = last.time_ns;
  double widest_ns = 0;
  for (std::size_t i = 1; i < readings.size(); ++i) {
    const auto ns = static_cast<double>(readings[i].time_ns - readings[i - 1].time_ns);
    const auto steps = steps_in(distance(readings[i - 1], readings[i]), clock.step);
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
  way.before = progress({0, 0}, first, clock);
  way.unevenness = unevenness(clock, readings, way.steps / (all_ns - way.lost_ns));
  return way;
}

}  // namespace crosstalk::attribution
