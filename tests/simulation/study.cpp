// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/study.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "attribution/samples/weights.h"
#include "attribution/timeline/probe_effect.h"
#include "attribution/timeline/probe_timeline.h"
#include "attribution/timeline/third_parties.h"
#include "base/units.h"
#include "tests/simulation/probing.h"

namespace crosstalk::simulation {
namespace {

using attribution::Amount;
using attribution::Matrix;
using CellKey = std::pair<std::pair<std::uint32_t, std::uint32_t>, std::size_t>;  // pair, sort

struct Timelines {
  std::vector<attribution::OwnershipTimeline> of_watch;
  attribution::ProbeRates rates;
};

Timelines timelines_of(const SimulatedRun& run) {
  std::vector<attribution::OwnershipTimeline> timelines;
  std::span<const profile::TrapRow> left = run.traps;
  for (const profile::WatchRow& watch : run.watches) {
    std::size_t own = 0;
    while (own < left.size() && left[own].watch == watch.id) {
      ++own;
    }
    timelines.push_back(attribution::ownership_timeline(watch, left.first(own), run.threads, simulated_access));
    attribution::prefer_watched_stores(timelines.back().communications);
    left = left.subspan(own);
  }
  attribution::LineStores stores(timelines, run.threads);
  SimulatedCode code;
  const attribution::SharedIndex shared({});
  attribution::ProbedLines probed(run.watches, run.threads, shared, code);
  for (const profile::SampleRow& sample : run.samples) {
    stores.add(sample);
    probed.add(sample);
  }
  attribution::find_producers(run.watches, timelines, stores, run.threads);
  attribution::ProbeRates rates = attribution::tell_probes(run.watches, timelines, probed);
  return {std::move(timelines), std::move(rates)};
}

/// The estimates of a run: the seen pairs, and the limits of the others.
struct Estimated {
  Matrix matrix;
  std::array<Amount, 2> totals;  // of false sharing, of true sharing
  bool counts = false;           // judged by how often there was communication, not by its time
  std::optional<attribution::UnseenLimits> unseen;

  [[nodiscard]] double value(const Amount& amount) const { return (counts ? amount.count : amount.cost_s).value_or(0); }
  [[nodiscard]] const std::optional<attribution::Interval>& interval(const Amount& amount) const {
    return counts ? amount.count_ci95 : amount.cost_ci95;
  }
  [[nodiscard]] double truth(const Truth& truth) const {
    return counts ? static_cast<double>(truth.count) : truth.cost_s;
  }
};

/// The interval of a pair that was not seen; absent: there is none.
std::optional<attribution::Interval> unseen_interval(const Estimated& estimated, std::uint32_t consumer,
                                                     bool true_sharing) {
  const attribution::ThreadLimits* limits = estimated.unseen ? estimated.unseen->of(consumer) : nullptr;
  if (limits == nullptr) {
    return std::nullopt;
  }
  const double unit = estimated.counts ? 1 : ns_per_s;
  return attribution::Interval{0, (true_sharing ? limits->anywhere.true_ns : limits->anywhere.false_ns) / unit};
}

std::map<CellKey, const Amount*> amounts_of(const Matrix& matrix) {
  std::map<CellKey, const Amount*> result;
  for (const attribution::Cell& cell : matrix) {
    result[{{cell.producer, cell.consumer}, 0}] = &cell.false_sharing;
    result[{{cell.producer, cell.consumer}, 1}] = &cell.true_sharing;
  }
  return result;
}

/// Why a report would give no number of communications; empty: it would.
std::string why_withheld(const SimulatedRun& run) {
  const bool probed =
      std::any_of(run.watches.begin(), run.watches.end(), [](const auto& watch) { return watch.probe.has_value(); });
  return probed ? attribution::why_no_counts_of_probes : attribution::why_no_counts(run.events);
}

double median_of(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Sums over the runs of one estimator.
class Tally {
 public:
  void add(const SimulatedRun& run, const Estimated& estimated) {
    const auto amounts = amounts_of(estimated.matrix);
    double estimated_s = 0;
    double true_s = 0;
    std::array<double, 2> true_of_sort{};
    for (const auto& [key, amount] : amounts) {
      estimated_s += estimated.value(*amount);
      excess_s_[key] += estimated.value(*amount);
      seen_ += static_cast<double>(amount->seen);
    }
    for (const auto& [pair, sorts] : run.truth) {
      for (std::size_t sort = 0; sort < sorts.size(); ++sort) {
        const double truth_s = estimated.truth(sorts[sort]);
        true_s += truth_s;
        true_of_sort.at(sort) += truth_s;
        excess_s_[{pair, sort}] -= truth_s;
        const auto found = amounts.find({pair, sort});
        if (sorts[sort].count > 0) {
          cover(truth_s, found != amounts.end() && estimated.interval(*found->second)
                             ? estimated.interval(*found->second)
                             : unseen_interval(estimated, pair.second, sort == 1));
        }
      }
    }
    for (std::size_t sort = 0; sort < true_of_sort.size(); ++sort) {
      const auto& interval = estimated.interval(estimated.totals.at(sort));
      const double truth_s = true_of_sort.at(sort);
      totals_ += truth_s > 0 ? 1 : 0;
      totals_covered_ += truth_s > 0 && interval && interval->low <= truth_s && truth_s <= interval->high ? 1 : 0;
    }
    estimated_s_ += estimated_s;
    true_s_ += true_s;
    counts_ = estimated.counts;
    withheld_ = why_withheld(run);
    if (true_s > 0) {
      errors_.push_back(estimated_s / true_s - 1);
    }
    squares_ += (estimated_s - true_s) * (estimated_s - true_s);
    ++runs_;
  }

  [[nodiscard]] Score finish(const attribution::Estimator& estimator) const {
    Score score;
    score.estimator = &estimator;
    score.runs = runs_;
    score.counts = counts_;
    score.withheld = withheld_;
    const double n = std::max(1U, runs_);
    score.estimated_s = estimated_s_ / n;
    score.true_s = true_s_ / n;
    score.detections = seen_ / n;
    score.cells = cells_;
    score.coverage = cells_ > 0 ? static_cast<double>(covered_) / static_cast<double>(cells_) : 0;
    score.total_coverage = totals_ > 0 ? static_cast<double>(totals_covered_) / static_cast<double>(totals_) : 0;
    score.median_error = median_of(errors_);
    score.width = intervals_ > 0 ? width_ / static_cast<double>(intervals_) : 0;
    if (score.true_s > 0) {
      const double error_s = score.estimated_s - score.true_s;
      score.bias = error_s / score.true_s;
      score.bias_error = std::sqrt(std::max(0.0, squares_ / n - error_s * error_s) / n) / score.true_s;
      double apart = 0;
      for (const auto& [key, excess_s] : excess_s_) {
        apart += std::abs(excess_s) / n;
      }
      score.misplaced = std::max(0.0, apart - std::abs(error_s)) / 2 / score.true_s;
    }
    return score;
  }

 private:
  void cover(double truth_s, const std::optional<attribution::Interval>& interval) {
    ++cells_;
    if (!interval) {
      return;
    }
    covered_ += interval->low <= truth_s && truth_s <= interval->high ? 1 : 0;
    width_ += (interval->high - interval->low) / truth_s;
    ++intervals_;
  }

  std::map<CellKey, double> excess_s_;
  double estimated_s_ = 0, true_s_ = 0, squares_ = 0, width_ = 0, seen_ = 0;
  std::vector<double> errors_;  // of each run's total, as fractions of the true one
  std::uint64_t cells_ = 0, covered_ = 0, intervals_ = 0, totals_ = 0, totals_covered_ = 0;
  std::uint32_t runs_ = 0;
  bool counts_ = false;
  std::string withheld_;
};

/// `withheld`: without the numbers that a report would withhold.
Estimated estimate_from(const SimulatedRun& run, const Timelines& timelines, const attribution::Estimator& estimator,
                        bool withheld) {
  attribution::Strata strata(run.watches, run.threads, estimator.policy);
  for (const profile::SampleRow& sample : run.samples) {
    strata.add(sample);
  }
  strata.finish();
  const attribution::WatchEvidence evidence(run.watches, timelines.of_watch, strata);
  auto estimate = attribution::estimate(estimator, evidence, strata, why_withheld(run));
  estimate.expansion.probe_rates = &timelines.rates;
  if (!withheld) {
    estimate.expansion.count_unknown.clear();
  }
  attribution::PairAmounts amounts(estimate.expansion, attribution::thread_pair);
  for (const attribution::Contribution& c : estimate.contributions) {
    amounts.add(attribution::summand_of(c, estimate.expansion, attribution::cost_s(c, estimate.expansion.strata)));
  }
  attribution::PairAmounts::Result all = amounts.finish();
  const bool counts = !run.samples.empty() && !run.samples.front().is_of_time();
  return {std::move(all.cells),
          {all.false_sharing, all.true_sharing},
          counts,
          counts ? estimate.expansion.unseen_counts : estimate.expansion.unseen};
}

}  // namespace

Matrix estimate_of(const SimulatedRun& run, const attribution::Estimator& estimator) {
  return estimate_from(run, timelines_of(run), estimator, false).matrix;
}

Matrix reported_of(const SimulatedRun& run, const attribution::Estimator& estimator) {
  return estimate_from(run, timelines_of(run), estimator, true).matrix;
}

namespace {

/// `simulated`: returns the run with a seed, in the memory of another run's samples.
template <class Simulated>
std::vector<Score> judge_runs(Simulated simulated, std::span<const attribution::Estimator> estimators,
                              std::uint32_t runs, std::uint64_t first_seed) {
  std::vector<Tally> tallies(estimators.size());
  std::vector<profile::SampleRow> room;
  for (std::uint32_t i = 0; i < runs; ++i) {
    SimulatedRun run = simulated(first_seed + i, std::move(room));
    const Timelines timelines = timelines_of(run);
    for (std::size_t e = 0; e < estimators.size(); ++e) {
      tallies[e].add(run, estimate_from(run, timelines, estimators[e], false));
    }
    room = std::move(run.samples);
  }
  std::vector<Score> scores;
  for (std::size_t e = 0; e < estimators.size(); ++e) {
    scores.push_back(tallies[e].finish(estimators[e]));
  }
  return scores;
}

}  // namespace

std::vector<Score> judge(const Scenario& scenario, std::span<const attribution::Estimator> estimators,
                         std::uint32_t runs, std::uint64_t first_seed) {
  return judge_runs([&](std::uint64_t seed,
                        std::vector<profile::SampleRow> room) { return simulate(scenario, seed, std::move(room)); },
                    estimators, runs, first_seed);
}

Score judge(const ProbedProgram& program, std::uint32_t runs, std::uint64_t first_seed) {
  const auto simulated = [&](std::uint64_t seed, std::vector<profile::SampleRow> /*room*/) {
    return simulate(program, seed);
  };
  return judge_runs(simulated, attribution::estimators().first(1), runs, first_seed).front();
}

}  // namespace crosstalk::simulation
