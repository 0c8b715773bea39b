// SPDX-License-Identifier: Apache-2.0
#include "attribution/counters/counter_sums.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "base/units.h"
#include "models/quantiles.h"

namespace crosstalk::attribution {
namespace {

constexpr double least_intervals = 4;
constexpr double most_left = 0.25;

/// The most events that a core of today does in a cycle; infinite for an unknown event.
double most_per_cycle(profile::CounterQuantity quantity) {
  using profile::CounterQuantity;
  constexpr double instructions = 10, flops = 64, accesses = 4, lines = 1, memory_lines = 0.25, branches = 4,
                   wrong_branches = 0.1;
  if (quantity == CounterQuantity::other) {
    return INFINITY;
  }
  if (quantity == CounterQuantity::instructions) {
    return instructions;
  }
  if (quantity >= CounterQuantity::flops_scalar && quantity <= CounterQuantity::flops) {
    return flops;
  }
  if (quantity == CounterQuantity::loads || quantity == CounterQuantity::stores) {
    return accesses;
  }
  if (quantity == CounterQuantity::l3_misses || quantity == CounterQuantity::memory_fills) {
    return memory_lines;
  }
  if (quantity >= CounterQuantity::l1d_fills && quantity <= CounterQuantity::l2_writebacks) {
    return lines;
  }
  if (quantity == CounterQuantity::branches) {
    return branches;
  }
  return quantity == CounterQuantity::branch_misses ? wrong_branches : 1;  // cycles, and parts of them
}

}  // namespace

void CounterSums::GroupSum::add(double more_seconds, std::span<const double> more) {
  intervals += 1;
  seconds += more_seconds;
  seconds2 += more_seconds * more_seconds;
  counts.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) {
    counts[i].sum += more[i];
    counts[i].squares += more[i] * more[i];
    counts[i].by_seconds += more[i] * more_seconds;
  }
}

CounterSums::CounterSums(std::span<const profile::CounterRow> counters,
                         std::span<const std::optional<std::size_t>> around, LoopOf loop_of)
    : counters_(counters), around_(around), loop_of_(std::move(loop_of)), loops_(around.size()) {
  for (std::size_t i = 0; i < counters.size(); ++i) {
    groups_.resize(std::max<std::size_t>(groups_.size(), counters[i].group + 1U));
    groups_[counters[i].group].push_back(i);
  }
}

/// Calls `take` for the loop `place`, if any, and each loop around it.
template <class Take>
void CounterSums::for_each_around(std::optional<std::size_t> place, Take take) const {
  for (std::size_t steps = 0; place && steps <= around_.size(); ++steps) {  // damaged data may go in a circle
    take(*place);
    place = around_[*place];
  }
}

/// True if `place`, a loop or none, is `loop` or inside it.
bool CounterSums::is_in(std::optional<std::size_t> place, std::size_t loop) const {
  bool found = false;
  for_each_around(place, [&](std::size_t at) { found = found || at == loop; });
  return found;
}

void CounterSums::take_interval(const Last& from, const profile::ReadingRow& to, std::optional<std::size_t> loop) {
  const double seconds = static_cast<double>(to.running_ns - from.running_ns) / ns_per_s;
  std::vector<double> counts;
  for (std::size_t i = 0; i < to.counts.size(); ++i) {
    counts.push_back(static_cast<double>(to.counts[i] - from.counts[i]));
  }
  Sums& thread = threads_[to.thread.value];
  thread.resize(groups_.size());
  thread[to.group].add(seconds, counts);
  for_each_around(from.loop, [&](std::size_t at) {
    LoopSums& sums = loops_[at];
    Passage& passage = sums.threads[to.thread.value];
    ++passage.begun;
    if (!is_in(loop, at)) {
      ++passage.left;
      return;
    }
    sums.inside.resize(groups_.size());
    sums.inside[to.group].add(seconds, counts);
  });
  for_each_around(loop, [&](std::size_t at) {
    if (!is_in(from.loop, at)) {
      ++loops_[at].threads[to.thread.value].entered;
    }
  });
}

void CounterSums::add(const profile::ReadingRow& reading) {
  if (reading.group >= groups_.size() || reading.counts.size() != groups_[reading.group].size()) {
    return;
  }
  const std::optional<std::size_t> loop = loop_of_(reading.thread, reading.time_ns, reading.ip);
  Last& last = last_[{reading.thread.value, reading.group}];
  const bool goes_on = !last.counts.empty() && last.life == reading.life && reading.running_ns > last.running_ns &&
                       std::equal(last.counts.begin(), last.counts.end(), reading.counts.begin(),
                                  [](std::uint64_t before, std::uint64_t now) { return before <= now; });
  if (goes_on) {
    take_interval(last, reading, loop);
  }
  last = {reading.life, reading.running_ns, reading.counts, loop};
}

/// Computes the rates of some code.
class CounterSums::Maker {
 public:
  Maker(const CounterSums& of, const Sums& sums, double elsewhere) : of_(of), sums_(sums), elsewhere_(elsewhere) {
    for (const profile::CounterRow& counter : of.counters_) {
      units_.insert(counter.unit);
    }
    for (const std::string& unit : units_) {
      seconds_[unit] = seconds_of(unit, [](const GroupSum& sum) { return sum.seconds; });
      cycles_[unit] = seconds_of(unit, [](const GroupSum& sum) { return sum.counts.empty() ? 0 : sum.counts[0].sum; });
      all_seconds_ += seconds_[unit];
      all_cycles_ += cycles_[unit];
    }
  }

  [[nodiscard]] std::vector<CountedRate> rates() {
    std::vector<CountedRate> rates;
    std::set<std::pair<profile::CounterQuantity, std::string>> known;
    for (const profile::CounterRow& counter : of_.counters_) {
      if (known.emplace(counter.quantity, counter.name).second) {
        if (auto rate = rate_of(counter)) {
          rates.push_back(std::move(*rate));
        }
      }
    }
    std::stable_sort(rates.begin(), rates.end(),
                     [](const CountedRate& a, const CountedRate& b) { return a.quantity < b.quantity; });
    return rates;
  }

 private:
  /// The average over the unit's groups, each of which was to count all the time, in turns.
  template <class Of>
  [[nodiscard]] double seconds_of(const std::string& unit, Of value) const {
    double sum = 0;
    double groups = 0;
    for (std::size_t group = 0; group < of_.groups_.size(); ++group) {
      const auto& counters = of_.groups_[group];
      if (!counters.empty() && of_.counters_[counters.front()].unit == unit) {
        sum += value(sums_[group]);
        groups += 1;
      }
    }
    return groups > 0 ? sum / groups : 0;
  }

  struct Found {
    double per_s = 0, variance = 0, degrees = 0, per_cycle = 0;
  };
  /// A ratio estimate with the variance of its residuals (Cochran, "Sampling Techniques", 6.4).
  [[nodiscard]] std::optional<Found> find(const profile::CounterRow& counter, std::size_t group,
                                          std::size_t position) const {
    const GroupSum& sum = sums_[group];
    if (sum.intervals < least_intervals || sum.seconds <= 0) {
      return std::nullopt;
    }
    const Count& count = sum.counts[position];
    Found found;
    const double rate = count.sum / sum.seconds;
    const double residuals = std::max(0.0, count.squares - 2 * rate * count.by_seconds + rate * rate * sum.seconds2);
    found.per_s = counter.each * rate;
    found.variance =
        counter.each * counter.each * residuals * sum.intervals / (sum.intervals - 1) / (sum.seconds * sum.seconds);
    found.degrees = sum.intervals - 1;
    const double cycles = sum.counts.front().sum;
    found.per_cycle = cycles > 0 ? counter.each * count.sum / cycles : 0;
    return found;
  }

  /// The sum of all the unit's events of the quantity.
  [[nodiscard]] std::optional<Found> find_in(const std::string& unit, const profile::CounterRow& wanted) const {
    std::optional<Found> sum;
    for (std::size_t group = 0; group < of_.groups_.size(); ++group) {
      for (std::size_t position = 0; position < of_.groups_[group].size(); ++position) {
        const profile::CounterRow& counter = of_.counters_[of_.groups_[group][position]];
        const bool is_it = counter.unit == unit && counter.quantity == wanted.quantity && counter.name == wanted.name;
        const bool again = sum && is_shared(wanted);
        if (!is_it || again) {
          continue;
        }
        const auto found = find_best(counter, group, position);
        if (!found) {
          return std::nullopt;
        }
        sum = sum.value_or(Found{0, 0, found->degrees, 0});
        sum->per_s += found->per_s, sum->variance += found->variance, sum->per_cycle += found->per_cycle;
        sum->degrees = std::min(sum->degrees, found->degrees);
      }
    }
    return sum;
  }

  /// True if several groups count the quantity, each one in full.
  [[nodiscard]] static bool is_shared(const profile::CounterRow& counter) {
    return counter.quantity == profile::CounterQuantity::cycles ||
           counter.quantity == profile::CounterQuantity::instructions;
  }
  /// The estimate of the group with the most degrees of freedom, for a quantity in several groups.
  [[nodiscard]] std::optional<Found> find_best(const profile::CounterRow& counter, std::size_t group,
                                               std::size_t position) const {
    if (!is_shared(counter)) {
      return find(counter, group, position);
    }
    std::optional<Found> best;
    for (std::size_t other = 0; other < of_.groups_.size(); ++other) {
      for (std::size_t at = 0; at < of_.groups_[other].size(); ++at) {
        const profile::CounterRow& same = of_.counters_[of_.groups_[other][at]];
        if (same.unit == counter.unit && same.quantity == counter.quantity) {
          const auto found = find(same, other, at);
          best = found && (!best || found->degrees > best->degrees) ? found : best;
        }
      }
    }
    return best;
  }

  /// The rate over all units, weighted by the time that the code ran on each. nullopt if more than a small part ran on
  /// units that do not count it.
  [[nodiscard]] std::optional<CountedRate> rate_of(const profile::CounterRow& counter) const {
    constexpr double negligible = 0.02;
    CountedRate rate{counter.name, counter.quantity, 0, {}, 0};
    double variance = 0;
    double degrees = INFINITY;
    for (const std::string& unit : units_) {
      const double weight = all_seconds_ > 0 ? seconds_.at(unit) / all_seconds_ : 0;
      const auto found = find_in(unit, counter);
      if (!found) {
        if (weight > negligible || units_.size() == 1) {
          return std::nullopt;
        }
        continue;
      }
      rate.per_s += weight * found->per_s;
      rate.per_cycle += (all_cycles_ > 0 ? cycles_.at(unit) / all_cycles_ : 0) * found->per_cycle;
      variance += weight * weight * found->variance;
      degrees = std::min(degrees, found->degrees);
    }
    if (!std::isfinite(degrees)) {
      return std::nullopt;
    }
    const double half = models::student_95(degrees) * std::sqrt(variance);
    const double most = most_per_cycle(counter.quantity) * cycles_per_s();
    const double more = elsewhere_ * std::max(0.0, most - rate.per_s);
    const double less = elsewhere_ / (1 - elsewhere_) * rate.per_s;
    rate.ci95 = {std::max(0.0, rate.per_s - half - (elsewhere_ > 0 ? more : 0)), rate.per_s + half + less};
    return rate;
  }

  [[nodiscard]] double cycles_per_s() const { return all_seconds_ > 0 ? all_cycles_ / all_seconds_ : 0; }

  const CounterSums& of_;
  const Sums& sums_;
  double elsewhere_;  // part of the seconds
  std::set<std::string> units_;
  std::map<std::string, double> seconds_, cycles_;  // by unit
  double all_seconds_ = 0, all_cycles_ = 0;
};

CounterSums::Doubt CounterSums::doubt_of(const LoopSums& loop) const {
  double begun = 0;
  double left = 0;
  double outside = 0;
  double entered = 0;
  for (const auto& [thread, passage] : loop.threads) {
    double all = 0;
    for (const GroupSum& sum : threads_.at(thread)) {
      all += sum.intervals;
    }
    begun += static_cast<double>(passage.begun);
    left += static_cast<double>(passage.left);
    outside += all - static_cast<double>(passage.begun);
    entered += static_cast<double>(passage.entered);
  }
  const double f = begun > 0 ? left / begun : 0;
  const double g = outside > 0 ? entered / outside : 1;
  return {f, f < 1 ? f * g / (1 - f) : 1};
}

CounterRates CounterSums::rates_of(const Sums& sums, Doubt doubt) const {
  CounterRates rates;
  rates.left = doubt.left;
  rates.elsewhere = doubt.elsewhere;
  for (const GroupSum& sum : sums) {
    rates.intervals += static_cast<std::uint64_t>(sum.intervals);
    rates.seconds += sum.seconds;
  }
  if (doubt.left > most_left) {
    rates.unknown = "its visits are shorter than the time between two readings of the counters";
  } else if (sums.empty()) {
    rates.unknown = "too few readings of the counters fell into it";
  } else {
    rates.rates = Maker(*this, sums, doubt.elsewhere).rates();
    rates.unknown = rates.rates.empty() ? "too few readings of the counters fell into it" : "";
  }
  return rates;
}

std::vector<CounterRates> CounterSums::loops() const {
  std::vector<CounterRates> rates;
  for (const LoopSums& loop : loops_) {
    rates.push_back(rates_of(loop.inside, doubt_of(loop)));
  }
  return rates;
}

std::vector<CounterSummary::Thread> CounterSums::threads() const {
  std::vector<CounterSummary::Thread> rates;
  for (const auto& [thread, sums] : threads_) {
    rates.push_back({thread, rates_of(sums, {})});
  }
  return rates;
}

}  // namespace crosstalk::attribution
