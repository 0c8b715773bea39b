// SPDX-License-Identifier: Apache-2.0
// Input and output of estimators: the observations of each watch, and how much of its sample's weight each
// communication gets.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/counts/communication_counts.h"
#include "attribution/estimate/gain_part.h"
#include "attribution/estimate/unseen_limits.h"
#include "attribution/samples/arming.h"
#include "attribution/samples/strata.h"
#include "attribution/timeline/seen.h"
#include "attribution/timeline/store_rate.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// The observations of one watch. All that it refers to must outlive the estimate.
struct Evidence {
  ThreadId thread;    // opened the watch with a sample
  double weight = 0;  // the sample's, in `unit`
  std::uint32_t stratum = Strata::none;
  std::span<const SeenCommunication> communications;
  std::span<const AccessPoint> accesses = {};  // all of them, in order
  const profile::WatchRow* watch = nullptr;    // null: estimators that need it skip the evidence
  AccessKind sampled = AccessKind::none;
  bool brief = false;                         // not longer than the shortest watch of a line without suspicion
  std::uint64_t brief_until_ns = UINT64_MAX;  // a brief watch would have ended here
  double long_weight = 1;                     // each access after that stands for so many
  std::span<const SeenCommunication> interrupted = {};
  profile::WeightUnit unit = profile::WeightUnit::ns;  // of the sample's weight and of the stratum
  Arming arming = {};
  std::uint32_t storers = 1, visitors = 1;  // other threads known to store, to access; 1 if all were armed

  /// 1 / the probability that the watch was open at `time_ns`.
  [[nodiscard]] double duration_weight(std::uint64_t time_ns) const {
    return time_ns > brief_until_ns ? long_weight : 1;
  }
};

/// The evidence of a profile's watches, made on request. All arguments must outlive this.
class WatchEvidence {
 public:
  WatchEvidence(std::span<const profile::WatchRow> watches, std::span<const OwnershipTimeline> timelines,
                const Strata& strata);
  ~WatchEvidence();
  WatchEvidence(const WatchEvidence&) = delete;
  WatchEvidence& operator=(const WatchEvidence&) = delete;
  [[nodiscard]] std::size_t size() const { return watches_.size(); }
  [[nodiscard]] Evidence at(std::size_t watch) const;
  /// The number of communications in all watches.
  [[nodiscard]] std::size_t communications() const;

 private:
  struct Common;  // data of all watches together
  std::span<const profile::WatchRow> watches_;
  std::span<const OwnershipTimeline> timelines_;
  const Strata& strata_;
  std::unique_ptr<Common> common_;
};

/// One communication's part of an estimate.
struct Contribution {
  const SeenCommunication* seen = nullptr;
  std::uint32_t watch = 0;  // index of its evidence
  std::uint32_t stratum = Strata::none;
  double watch_weight = 0;  // x: the weight of the sample that opened the watch
  double cost = 0;          // y: how much of it this communication is charged, before expansion; in its unit
  double late = 0;          // the part of `cost` for accesses after brief watches end
  std::uint32_t gain = 0;   // index into Expansion::gains
};

/// Data to turn contributions into amounts.
struct Expansion {
  std::vector<Stratum> strata;                               // indexed by contributions
  std::vector<SampledTime> threads;                          // all samples of each thread
  std::optional<std::string> unknown;                        // why there can be no amounts; absent: there can
  std::optional<UnseenLimits> unseen = std::nullopt;         // of time; absent: the estimator cannot tell
  std::optional<UnseenLimits> unseen_counts = std::nullopt;  // of accesses; absent: no samples count them
  bool zeros_unknown = false;                                // some accesses go unseen, so zero seen means unknown
  std::string count_unknown = {};           // why samples' weights cannot say how often; empty: they can
  const CountTable* counts = nullptr;       // absent: counts are not known
  std::vector<GainPart> gains = {};         // indexed by contributions; empty: gains are not known
  const ProbeRates* probe_rates = nullptr;  // of the evidence; absent: lines were watched
};
[[nodiscard]] Expansion expansion_of(const Strata& strata);

/// Contributions, and the communications that the estimator itself has made. Moved, never copied.
struct Estimate {
  Estimate() = default;
  Estimate(Estimate&&) noexcept = default;
  Estimate& operator=(Estimate&&) noexcept = default;
  Estimate(const Estimate&) = delete;
  Estimate& operator=(const Estimate&) = delete;
  ~Estimate() = default;

  std::vector<Contribution> contributions;  // in the order of the watches
  Expansion expansion;
  std::deque<SeenCommunication> seen;  // its elements stay where they are
};

}  // namespace crosstalk::attribution
