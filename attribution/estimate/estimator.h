// SPDX-License-Identifier: Apache-2.0
// Estimates costs of communication from watches.
//
// Each estimator is a pure function from evidence to contributions (the part of its stratum's watched time that each
// communication represents); one formula computes amounts with their intervals from the contributions (amounts.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "attribution/estimate/evidence.h"
#include "attribution/samples/strata.h"
#include "base/result.h"

namespace crosstalk::attribution {

/// A method of estimation. `charge` appends the contributions of one watch.
struct Estimator {
  std::string_view name, summary;  // as the command line has them; a clause without a full stop
  StrataPolicy policy;
  void (*charge)(const Evidence& evidence, std::uint32_t watch, Estimate& out) = nullptr;
  bool within_time = false;  // scales a thread's charges down to its time, or its accesses
  bool censoring = false;    // compensates for the shortness of brief watches (censoring.h)
  bool till_seen = false;    // a sampled load's watch that is full before anything could be charged has not decided
  bool balanced = false;     // compensates for watches that begin late after a counting sample (return_balance.h)
};
/// All estimators, the default first.
[[nodiscard]] std::span<const Estimator> estimators();
/// The estimator called `name`, or the default for "automatic"; an error lists the names.
[[nodiscard]] Result<const Estimator*> find_estimator(std::string_view name);

/// The least number of watches for an estimate.
inline constexpr std::uint64_t least_watches_of_estimate = 2;
/// `strata` have the estimator's policy and are finished. `count_unknown`: why counting samples do not stand for all
/// accesses; empty: they do.
[[nodiscard]] Estimate estimate(const Estimator& estimator, const WatchEvidence& watches, const Strata& strata,
                                std::string count_unknown = {});

}  // namespace crosstalk::attribution
