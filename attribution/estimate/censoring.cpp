// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/censoring.h"

#include <algorithm>

namespace crosstalk::attribution {

void Censoring::add(const Evidence& evidence, std::span<const Contribution> charged) {
  Looks& looks = looks_[evidence.stratum];
  looks.all += evidence.weight;
  const bool late = std::all_of(charged.begin(), charged.end(), [&](const Contribution& c) {
    // An expected consumer is the sample itself: only the store counts.
    return std::max(c.seen->producer.time_ns, c.seen->consumer.time_ns) > evidence.brief_until_ns;
  });
  late_.insert(late_.end(), charged.size(), late);
  if (evidence.brief) {
    return;
  }
  looks.lasting += evidence.weight;
  const bool event = std::any_of(charged.begin(), charged.end(), [](const Contribution& c) { return c.cost > 0; });
  Timings& timings = timings_[evidence.unit];
  for (Timing* timing : {&timings.threads[evidence.thread.value], &timings.all}) {
    timing->watches += event ? 1 : 0;
    for (const Contribution& c : charged) {
      LineTiming& line = timing->lines[evidence.watch != nullptr ? evidence.watch->line : 0];
      (late ? line.late : line.early) += c.cost;
    }
  }
}

/// The late communication for each nanosecond of early one. Assumes one more early line: of n lines with X early ones,
/// (n - X) / (X + 1) is right on average, while (n - X) / X is too high, or infinite (Chapman).
double Censoring::Timing::ratio() const {
  double early = 0;
  double late = 0;
  for (const auto& [line, of_line] : lines) {
    const double all = of_line.early + of_line.late;
    early += all > 0 ? of_line.early / all : 0;
    late += all > 0 ? of_line.late / all : 0;
  }
  return late / (early + 1);
}

double Censoring::ratio(const Stratum& of) const {
  const Timings& timings = timings_[of.unit];
  const auto own = timings.threads.find(of.thread);
  return own != timings.threads.end() && own->second.watches >= least_shown ? own->second.ratio() : timings.all.ratio();
}

Censoring::Factors Censoring::factors(std::uint32_t stratum, const Stratum& of) const {
  const auto found = looks_.find(stratum);
  if (found == looks_.end()) {
    return {};
  }
  const Looks& looks = found->second;
  const double by_early = 1 + ratio(of);
  if (looks.all <= by_early * looks.lasting) {
    return {1, looks.lasting > 0 ? looks.all / looks.lasting : 1};
  }
  // The long watches have seen their part of the late communication.
  return {1 + (by_early - 1) * (1 - looks.lasting / looks.all), 1};
}

void Censoring::weigh(std::span<Contribution> contributions, std::span<const Stratum> strata) const {
  for (std::size_t i = 0; i < contributions.size() && i < late_.size(); ++i) {
    Contribution& c = contributions[i];
    const Factors stands_for = factors(c.stratum, strata[c.stratum]);
    const double seen = c.cost;
    c.cost *= late_[i] ? stands_for.late : stands_for.early;
    c.late = c.cost - seen;
  }
}

double Censoring::most(std::uint32_t stratum, const Stratum& of) const {
  const Factors stands_for = factors(stratum, of);
  return std::max(stands_for.early, stands_for.late);
}

}  // namespace crosstalk::attribution
