// SPDX-License-Identifier: Apache-2.0
// From communications seen by watches to estimates of what they cost.
//
// Each estimator is a pure function from evidence to contributions (which communication stands for how much of its
// stratum's watched time); amounts with their intervals follow from the contributions by one formula, matrix_of().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/analysis.h"
#include "attribution/strata.h"
#include "attribution/watch_story.h"
#include "base/result.h"

namespace crosstalk::attribution {

/// What one watch saw. `communications` must outlive the estimate.
struct Evidence {
  ThreadId thread;    // whose sample opened the watch
  double cpu_ns = 0;  // the sample's weight
  std::uint32_t stratum = Strata::none;
  std::span<const SeenCommunication> communications;
};

/// One communication's part of an estimate.
struct Contribution {
  const SeenCommunication* seen = nullptr;
  std::uint32_t watch = 0;  // index of its evidence
  std::uint32_t stratum = Strata::none;
  double watch_ns = 0;  // x: the weight of the sample that opened the watch
  double cost_ns = 0;   // y: how much of it this communication is charged, before expansion
};

/// The post-stratified estimator of cost. A watch that saw communication says that its sample's time went into it.
/// That time is charged to the communications that the sampled thread consumed, or, when it consumed none, to all
/// that the watch saw, in proportion to their weights; where randomly drawn words were needed to see any of them, it
/// counts 1 / probability (Horvitz-Thompson). Chance may make such counts exceed the time of a thread; then the
/// thread's are scaled down to it. By evidence, then by communication.
[[nodiscard]] std::vector<Contribution> post_stratified(std::span<const Evidence> evidence,
                                                        std::span<const Stratum> strata);

using Estimator = std::vector<Contribution> (*)(std::span<const Evidence>, std::span<const Stratum>);
/// The estimator called by `name`; an error lists the names.
[[nodiscard]] Result<Estimator> find_estimator(std::string_view name);

/// Who a contribution is filed under. Equal producer and consumer: not listed.
struct Pair {
  std::uint32_t producer = 0, consumer = 0;
};
using PairOf = Pair (*)(const SeenCommunication&);
[[nodiscard]] Pair thread_pair(const SeenCommunication& seen);
[[nodiscard]] Pair core_pair(const SeenCommunication& seen);

/// Cost, its 95 % interval, and detections of each pair. `contributions` are those of any subset of communications
/// (a line's, an object's), in the estimator's order, so that one watch's lie together.
///
/// Cost is the sum over strata of X R with R = sum y / sum x over the stratum's watched samples and X its eligible
/// time. Its variance is that of two-phase sampling with a ratio estimator (Cochran, Sampling Techniques, 6.4, 12.3):
/// (1 - n/N) X^2 s_e^2 / (n xbar^2), e = y - R x, plus R^2 sum x^2 for the chance of which samples there are (Poisson).
/// With few watches s_e is a poor estimate, so it is never taken smaller than that of a proportion with two
/// successes and two failures added (Agresti and Coull 1998). Intervals are never negative.
[[nodiscard]] Matrix matrix_of(std::span<const Contribution> contributions, std::span<const Stratum> strata,
                               PairOf pair_of);
/// Sum of expanded costs, seconds.
[[nodiscard]] double total_cost_s(std::span<const Contribution> contributions, std::span<const Stratum> strata);
/// One contribution's expanded cost, seconds.
[[nodiscard]] double cost_s(const Contribution& contribution, std::span<const Stratum> strata);

/// Invalidations by (storing thread, thread that loses its copy): detections only, costs are not known.
[[nodiscard]] Matrix invalidation_matrix(std::span<const SeenInvalidation> invalidations);

}  // namespace crosstalk::attribution
