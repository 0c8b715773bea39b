// SPDX-License-Identifier: Apache-2.0
// Computes amounts with intervals, and their matrices, from contributions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "attribution/estimate/evidence.h"
#include "attribution/model/model.h"

namespace crosstalk::attribution {

/// The pair under which a contribution is filed. Equal producer and consumer: not listed.
struct Pair {
  std::uint32_t producer = 0, consumer = 0;
};
using PairOf = Pair (*)(const SeenCommunication&);
[[nodiscard]] Pair thread_pair(const SeenCommunication& seen);
[[nodiscard]] Pair core_pair(const SeenCommunication& seen);

/// Cost, its 95 % interval, and detections of each pair. `contributions` may be those of any subset of communications
/// (a line's, an object's), in the estimator's order, so that one watch's lie together. If the expansion says that
/// amounts are unknown, costs are absent.
///
/// Cost is the sum over strata of X R with R = sum y / sum x over the stratum's watched samples and X its eligible
/// time. Its variance is that of two-phase sampling with a ratio estimator (Cochran, Sampling Techniques, 6.4, 12.2):
/// - second phase, the choice of watched samples: X^2 s_e^2 / (n xbar^2) with e = y - R x;
/// - first phase, the choice of samples: a clock hands out a thread's whole time, so strata share a fixed sum and the
///   variance is that of a multinomial, sum over a thread's samples of (z - rho x)^2 with z = R x of the sample's
///   stratum and rho the thread's mean. It is 0 for a thread that does nothing else.
/// - of probes, the rates of stores that weight them (probe_errors.h).
/// The interval is that of a sum of few events (intervals.h). The variance already includes the extra event of its
/// upper limit, as watches of middling outcome that fill up strata: with both, the intervals of `ring` and
/// `waiting_writer` held in more than 98 % (docs/accuracy.md). An amount of 0 has the limit of what the consumer may
/// share unseen with a known partner (unseen_limits.h). If watches that represent no time saw some of it, it has the
/// limit of what the consumer may share unseen anywhere.
///
/// Samples that count accesses give counts by the same formula without the first phase: they share no fixed sum. If no
/// sample represents time, costs are absent. There is no finite population correction: with one, the first phase would
/// have to count each stratum's own spread.
[[nodiscard]] Matrix matrix_of(std::span<const Contribution> contributions, const Expansion& expansion, PairOf pair_of);

/// A contribution with the data that each of its amounts needs.
struct Summand {
  const Contribution* contribution = nullptr;
  CountTable::Place place;  // the place that counts it
  double cost_s = 0;        // expanded
};
[[nodiscard]] Summand summand_of(const Contribution& contribution, const Expansion& expansion, double cost_s);

/// A growing matrix with its totals. One pass over the contributions, which may be millions, fills all their rows.
/// Contributions must come in the estimator's order.
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
