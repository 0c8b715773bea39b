// SPDX-License-Identifier: Apache-2.0
// Estimators judged by many simulated runs of a scenario.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attribution/estimate/amounts.h"
#include "attribution/estimate/estimator.h"
#include "tests/simulation/probing.h"
#include "tests/simulation/run.h"

namespace crosstalk::simulation {

/// Returns an estimator's matrix from a run's rows, by the same steps as a report.
[[nodiscard]] attribution::Matrix estimate_of(const SimulatedRun& run, const attribution::Estimator& estimator);

/// As a report shows it: without numbers of communications if samples cannot tell them.
[[nodiscard]] attribution::Matrix reported_of(const SimulatedRun& run, const attribution::Estimator& estimator);

/// An estimator's performance in one scenario. Errors and widths are fractions of the true total: of the cost, seconds,
/// or, if samples count, of communications.
struct Score {
  const attribution::Estimator* estimator = nullptr;
  std::uint32_t runs = 0;
  bool counts = false;        // judged by how often there was communication
  std::string withheld;       // why a report would not say it; empty: it would
  double bias = 0;            // mean of estimated total - true total
  double bias_error = 0;      // its standard error
  double median_error = 0;    // of a run's total, likewise
  double misplaced = 0;       // half the sum over pairs and sorts of |mean estimate - mean truth|, beyond the bias
  double coverage = 0;        // share of (run, pair, sort) with a true cost whose interval holds it
  std::uint64_t cells = 0;    // how many of them there are
  double width = 0;           // mean width of these intervals, as a fraction of the true cost of their cell
  double total_coverage = 0;  // share of (run, sort) with a true cost in which the interval of the sum holds it
  double detections = 0;      // mean of communications seen, a run
  double estimated_s = 0, true_s = 0;  // mean totals, seconds or communications
};

/// Runs with seeds first_seed, first_seed + 1, ...; returns one score for each estimator, in order. Also judges numbers
/// of communications that a report would not show.
[[nodiscard]] std::vector<Score> judge(const Scenario& scenario, std::span<const attribution::Estimator> estimators,
                                       std::uint32_t runs, std::uint64_t first_seed = 1);
/// The default estimator's score where lines are probed.
[[nodiscard]] Score judge(const ProbedProgram& program, std::uint32_t runs, std::uint64_t first_seed = 1);

}  // namespace crosstalk::simulation
