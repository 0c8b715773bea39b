// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/censoring.h"

#include <algorithm>

#include "attribution/estimate/estimator.h"

namespace crosstalk::attribution {

void Censoring::add(const Evidence& evidence, std::span<const Contribution> charged) {
  Looks& looks = looks_[evidence.stratum];
  looks.all_ns += evidence.cpu_ns;
  const bool late = std::all_of(charged.begin(), charged.end(), [&](const Contribution& c) {
    // A consumer that is only expected is the sample: it was told by the store.
    return std::max(c.seen->producer.time_ns, c.seen->consumer.time_ns) > evidence.brief_until_ns;
  });
  late_.insert(late_.end(), charged.size(), late);
  if (evidence.brief) {
    return;
  }
  looks.long_ns += evidence.cpu_ns;
  const bool event = std::any_of(charged.begin(), charged.end(), [](const Contribution& c) { return c.cost_ns > 0; });
  for (Timing* timing : {&timings_[evidence.thread.value], &timing_}) {
    timing->watches += event ? 1 : 0;
    for (const Contribution& c : charged) {
      CostAttribution& charges = timing->charges[evidence.watch != nullptr ? evidence.watch->line : 0];
      (late ? charges.late_ns : charges.early_ns) += c.cost_ns;
    }
  }
}

/// What comes late for each nanosecond that comes early. One line more is taken to be early: of n, X of them early,
/// (n - X) / (X + 1) is right on average where (n - X) / X is too high, or infinite (Chapman).
double Censoring::Timing::ratio() const {
  double early = 0;
  double late = 0;
  for (const auto& [line, of_line] : charges) {
    const double all_ns = of_line.early_ns + of_line.late_ns;
    early += all_ns > 0 ? of_line.early_ns / all_ns : 0;
    late += all_ns > 0 ? of_line.late_ns / all_ns : 0;
  }
  return late / (early + 1);
}

double Censoring::ratio(std::uint32_t thread) const {
  const auto own = timings_.find(thread);
  return own != timings_.end() && own->second.watches >= least_shown ? own->second.ratio() : timing_.ratio();
}

Censoring::Factors Censoring::factors(std::uint32_t stratum, std::uint32_t thread) const {
  const auto found = looks_.find(stratum);
  if (found == looks_.end()) {
    return {};
  }
  const Looks& looks = found->second;
  const double by_early = 1 + ratio(thread);
  if (looks.all_ns <= by_early * looks.long_ns) {
    return {1, looks.long_ns > 0 ? looks.all_ns / looks.long_ns : 1};
  }
  // The long ones have seen their part of what came late.
  return {1 + (by_early - 1) * (1 - looks.long_ns / looks.all_ns), 1};
}

void Censoring::weigh(std::span<Contribution> contributions, std::span<const Stratum> strata) const {
  for (std::size_t i = 0; i < contributions.size() && i < late_.size(); ++i) {
    Contribution& c = contributions[i];
    const Factors stands_for = factors(c.stratum, strata[c.stratum].thread);
    const double seen_ns = c.cost_ns;
    c.cost_ns *= late_[i] ? stands_for.late : stands_for.early;
    c.late_ns = c.cost_ns - seen_ns;
  }
}

double Censoring::most(std::uint32_t stratum, std::uint32_t thread) const {
  const Factors stands_for = factors(stratum, thread);
  return std::max(stands_for.early, stands_for.late);
}

}  // namespace crosstalk::attribution
