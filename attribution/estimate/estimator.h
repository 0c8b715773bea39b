// SPDX-License-Identifier: Apache-2.0
// From communications seen by watches to estimates of what they cost.
//
// Each estimator is a pure function from evidence to contributions (which communication stands for how much of its
// stratum's watched time); amounts with their intervals follow from the contributions by one formula (amounts.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "attribution/estimate/evidence.h"
#include "attribution/estimate/strata.h"
#include "base/result.h"

namespace crosstalk::attribution {

/// A way to make estimates of watches. `charge` appends what one watch contributes.
struct Estimator {
  std::string_view name, summary;  // as the command line has them; a clause without a full stop
  StrataPolicy policy;
  void (*charge)(const Evidence& evidence, std::uint32_t watch, Estimate& out) = nullptr;
  bool within_time = false;  // what is charged to a thread is scaled down to the time, or the accesses, that it has
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
[[nodiscard]] Estimate estimate(const Estimator& estimator, const WatchEvidence& watches, const Strata& strata);

}  // namespace crosstalk::attribution
