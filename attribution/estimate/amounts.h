// SPDX-License-Identifier: Apache-2.0
// From contributions to amounts with intervals, and their matrices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "attribution/estimate/evidence.h"
#include "attribution/model.h"

namespace crosstalk::attribution {

/// Who a contribution is filed under. Equal producer and consumer: not listed.
struct Pair {
  std::uint32_t producer = 0, consumer = 0;
};
using PairOf = Pair (*)(const SeenCommunication&);
[[nodiscard]] Pair thread_pair(const SeenCommunication& seen);
[[nodiscard]] Pair core_pair(const SeenCommunication& seen);

/// Cost, its 95 % interval, and detections of each pair. `contributions` are those of any subset of communications
/// (a line's, an object's), in the estimator's order, so that one watch's lie together. Where the expansion says that
/// amounts are unknown, costs are absent.
///
/// Cost is the sum over strata of X R with R = sum y / sum x over the stratum's watched samples and X its eligible
/// time. Its variance is that of two-phase sampling with a ratio estimator (Cochran, Sampling Techniques, 6.4, 12.2):
/// - second phase, which samples were watched: X^2 s_e^2 / (n xbar^2) with e = y - R x;
/// - first phase, which samples there are: a clock hands out a thread's whole time, so strata share a fixed sum and the
///   variance is that of a multinomial, sum over a thread's samples of (z - rho x)^2 with z = R x of the sample's
///   stratum and rho the thread's mean. It is 0 for a thread that does nothing else.
/// The interval is that of a sum of few events (intervals.h). The event that its upper limit adds to those that came is
/// in the variance here, as watches of middling outcome that strata are filled up with; with both, `ring` and
/// `waiting_writer` held more than 98 % (docs/accuracy.md). An amount of 0 has the limit of what the
/// consumer may share with a known partner unseen (unseen_limits.h); where some of it was seen all the same, by watches
/// that stand for no time, that of what it may share unseen anywhere.
/// Samples that count accesses give counts by the same formula, but for the first phase: there is no whole that they
/// share. Where no sample stands for time, costs are absent.
/// There is no finite population correction: with one, the first phase would have to count each stratum's own spread.
[[nodiscard]] Matrix matrix_of(std::span<const Contribution> contributions, const Expansion& expansion, PairOf pair_of);

/// A contribution, and what each amount that it is a part of needs to know of it.
struct Summand {
  const Contribution* contribution = nullptr;
  CountTable::Place place;  // where it is counted
  double cost_s = 0;        // expanded
};
[[nodiscard]] Summand summand_of(const Contribution& contribution, const Expansion& expansion, double cost_s);

/// A matrix and its totals as they grow, so that one pass over the contributions, of which there may be millions, fills
/// all the rows that they belong to. They are to come in the estimator's order.
class PairAmounts {
 public:
  /// `expansion` must outlive this.
  PairAmounts(const Expansion& expansion, PairOf pair_of);
  PairAmounts(PairAmounts&&) noexcept;
  PairAmounts& operator=(PairAmounts&&) = delete;
  ~PairAmounts();
  void add(const Summand& summand);
  struct Result {
    Matrix cells;
    Amount true_sharing, false_sharing;  // of all pairs
  };
  [[nodiscard]] Result finish();

 private:
  struct Sums;
  std::unique_ptr<Sums> sums_;
};

/// One contribution's expanded cost, seconds.
[[nodiscard]] double cost_s(const Contribution& contribution, std::span<const Stratum> strata);

/// Invalidations by (storing thread, thread that loses its copy): detections only, costs are not known.
[[nodiscard]] Matrix invalidation_matrix(std::span<const OwnershipTimeline> timelines);

}  // namespace crosstalk::attribution
