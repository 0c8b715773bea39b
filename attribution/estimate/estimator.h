// SPDX-License-Identifier: Apache-2.0
// From communications seen by watches to estimates of what they cost.
//
// Each estimator is a pure function from evidence to contributions (which communication stands for how much of its
// stratum's watched time); amounts with their intervals follow from the contributions by one formula, matrix_of().
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/analysis.h"
#include "attribution/counts/communication_counts.h"
#include "attribution/estimate/strata.h"
#include "attribution/estimate/unseen.h"
#include "attribution/timeline/ownership_timeline.h"
#include "base/result.h"

namespace crosstalk::attribution {

/// What one watch saw. All that it refers to must outlive the estimate.
struct Evidence {
  ThreadId thread;    // whose sample opened the watch
  double cpu_ns = 0;  // the sample's weight
  std::uint32_t stratum = Strata::none;
  std::span<const SeenCommunication> communications;
  std::span<const AccessPoint> accesses = {};  // all that was seen, in order
  const profile::WatchRow* watch = nullptr;    // absent: estimators that ask for partners make nothing of it
  AccessKind sampled = AccessKind::none;
  bool brief = false;                         // the watch was one that looks for a short time only
  std::uint64_t brief_until_ns = UINT64_MAX;  // what is seen later, only a long watch can see,
  double long_weight = 1;                     // of which there is one in so many where that was drawn by chance
  std::span<const SeenCommunication> interrupted = {};

  /// 1 / the probability that the watch was open at `time_ns`.
  [[nodiscard]] double duration_weight(std::uint64_t time_ns) const {
    return time_ns > brief_until_ns ? long_weight : 1;
  }
};
[[nodiscard]] std::vector<Evidence> evidence_of(std::span<const profile::WatchRow> watches,
                                                std::span<const OwnershipTimeline> timelines, const Strata& strata);

/// One communication's part of an estimate.
struct Contribution {
  const SeenCommunication* seen = nullptr;
  std::uint32_t watch = 0;  // index of its evidence
  std::uint32_t stratum = Strata::none;
  double watch_ns = 0;  // x: the weight of the sample that opened the watch
  double cost_ns = 0;   // y: how much of it this communication is charged, before expansion
  double late_ns = 0;   // of it, for what watches were too brief to see
};

/// What turns contributions into amounts.
struct Expansion {
  std::vector<Stratum> strata;                        // that contributions name
  std::vector<SampledTime> threads;                   // all samples of each thread
  std::optional<std::string> unknown;                 // why there can be no amounts; absent: there can
  std::optional<UnseenLimits> unseen = std::nullopt;  // absent: the estimator can not tell
  const CountTable* counts = nullptr;                 // absent: counts are not known
};
[[nodiscard]] Expansion expansion_of(const Strata& strata);

/// Contributions, and what they refer to where the estimator has put it together itself. Moved, never copied.
struct Estimate {
  Estimate() = default;
  Estimate(Estimate&&) noexcept = default;
  Estimate& operator=(Estimate&&) noexcept = default;
  Estimate(const Estimate&) = delete;
  Estimate& operator=(const Estimate&) = delete;
  ~Estimate() = default;

  std::vector<Contribution> contributions;  // by evidence
  Expansion expansion;
  std::deque<SeenCommunication> seen;  // its elements stay where they are
};

/// A way to make estimates of watches. `charge` appends what one watch contributes.
struct Estimator {
  std::string_view name, summary;  // as the command line has them; a clause without a full stop
  StrataPolicy policy;
  void (*charge)(const Evidence& evidence, std::uint32_t watch, Estimate& out) = nullptr;
  bool within_time = false;  // what is charged to a thread is scaled down to the time that it has
  bool censoring = false;    // what brief watches were too short to see is made up for (censoring.h)
  bool till_seen = false;    // a sampled load's watch that is full before anything could be charged has not decided
};
/// All of them, the default first.
[[nodiscard]] std::span<const Estimator> estimators();
/// The estimator called by `name`, "automatic" being the default; an error lists the names.
[[nodiscard]] Result<const Estimator*> find_estimator(std::string_view name);

/// Watches that an estimator needs to say anything.
inline constexpr std::uint64_t least_watches_of_estimate = 2;
/// `strata` have the estimator's policy and are finished.
[[nodiscard]] Estimate estimate(const Estimator& estimator, std::span<const Evidence> evidence, const Strata& strata);

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
/// `waiting_writer` held more than 98 % (docs/accuracy.md). An amount of 0 has the consumer's limit on lines that were
/// ever suspected (unseen.h): other lines are not to be blamed on just this pair.
/// There is no finite population correction: with one, the first phase would have to count each stratum's own spread.
[[nodiscard]] Matrix matrix_of(std::span<const Contribution> contributions, const Expansion& expansion, PairOf pair_of);
/// Sum of expanded costs, seconds.
[[nodiscard]] double total_cost_s(std::span<const Contribution> contributions, std::span<const Stratum> strata);
/// One contribution's expanded cost, seconds.
[[nodiscard]] double cost_s(const Contribution& contribution, std::span<const Stratum> strata);

/// Invalidations by (storing thread, thread that loses its copy): detections only, costs are not known.
[[nodiscard]] Matrix invalidation_matrix(std::span<const SeenInvalidation> invalidations);

}  // namespace crosstalk::attribution
