// SPDX-License-Identifier: Apache-2.0
// Computes rates of loops and threads from readings of hardware counters.
//
// The counts between two readings of a thread belong to the loop that contains both. If the readings are in different
// places, the moment of the change between them is not known, and the interval is left out.
//
// A thread may also leave a loop and come back between two readings. Let f be the part of the intervals that begin in
// the loop and end elsewhere, and g the part of those that begin elsewhere and end in it. If the thread changed places
// at constant rates, the part of the time elsewhere in intervals with both ends in the loop would be, with P the
// probability to be at one place so long after the other and T an interval,
//     1/T integral of P(elsewhere, t | loop) P(loop, T - t | elsewhere) dt / P(loop, T | loop)  <=  f g / (1 - f),
// since both factors under the integral grow with time. With long visits that is tiny, f g; for a loop that is
// interrupted all the time it is f. The events in that time are unknown, between none and as many as a core can do:
// intervals of rates are wider by that. With f above a quarter there are no rates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "attribution/counters/counter_rates.h"
#include "profile/counter_reading.h"

namespace crosstalk::attribution {

class CounterSums {
 public:
  /// Returns the number of the loop that contains the instruction; nothing: none.
  using LoopOf = std::function<std::optional<std::size_t>(ThreadId thread, std::uint64_t time_ns, std::uint64_t ip)>;
  /// `around`: the parent of each loop. Both must outlive this.
  CounterSums(std::span<const profile::CounterRow> counters, std::span<const std::optional<std::size_t>> around,
              LoopOf loop_of);

  /// Takes readings of one thread and group in the order of time. Leaves out one whose counts do not fit its group.
  void add(const profile::ReadingRow& reading);

  /// The rates of each loop, all threads together.
  [[nodiscard]] std::vector<CounterRates> loops() const;
  [[nodiscard]] std::vector<CounterSummary::Thread> threads() const;

 private:
  /// Sums of one counter: of its counts, of their squares, and of their products with the seconds.
  struct Count {
    double sum = 0, squares = 0, by_seconds = 0;
  };
  struct GroupSum {
    double intervals = 0, seconds = 0, seconds2 = 0;
    std::vector<Count> counts;
    void add(double seconds, std::span<const double> more);
  };
  using Sums = std::vector<GroupSum>;  // by group
  /// Intervals of one thread.
  struct Passage {
    std::uint64_t begun = 0, left = 0,
                  entered = 0;  // in a loop; of them, ended elsewhere; begun elsewhere, ended in it
  };
  struct LoopSums {
    Sums inside;
    std::map<std::uint32_t, Passage> threads;
  };
  struct Doubt {
    double left = 0, elsewhere = 0;  // as in CounterRates
  };
  struct Last {
    std::uint32_t life = 0;
    std::uint64_t running_ns = 0;
    std::vector<std::uint64_t> counts;
    std::optional<std::size_t> loop;
  };
  class Maker;
  void take_interval(const Last& from, const profile::ReadingRow& to, std::optional<std::size_t> loop);
  template <class Take>
  void for_each_around(std::optional<std::size_t> place, Take take) const;
  [[nodiscard]] bool is_in(std::optional<std::size_t> place, std::size_t loop) const;
  [[nodiscard]] Doubt doubt_of(const LoopSums& loop) const;
  [[nodiscard]] CounterRates rates_of(const Sums& sums, Doubt doubt) const;

  std::span<const profile::CounterRow> counters_;
  std::span<const std::optional<std::size_t>> around_;
  LoopOf loop_of_;
  std::vector<std::vector<std::size_t>> groups_;                  // by group: indices of its counters
  std::map<std::pair<std::uint32_t, std::uint32_t>, Last> last_;  // by thread and group
  std::vector<LoopSums> loops_;
  std::map<std::uint32_t, Sums> threads_;
};

}  // namespace crosstalk::attribution
