// SPDX-License-Identifier: Apache-2.0
// Contributions with their code and data, the input of a report's tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attribution/estimate/evidence.h"
#include "attribution/objects/sharing_kind.h"
#include "attribution/samples/sample_digest.h"
#include "attribution/timeline/seen.h"

namespace crosstalk::attribution {

/// All data of communication. All spans must outlive their use.
struct CommunicationInputs {
  std::span<const OwnershipTimeline> timelines;  // by watch
  std::span<const Contribution> contributions;
  const Expansion& expansion;
  std::span<const SampledAccess> sampled;  // on lines that saw communication
  std::size_t max_rows = 100;
};

/// The code and data at both ends of a contribution. There may be millions.
struct LocatedContribution {
  std::uint32_t producer_site = 0, consumer_site = 0;  // indices into SiteTable
  std::uint32_t object = 0;                            // accessed by the consumer, of DataObjects
  Purpose purpose = Purpose::data;                     // of the consumer's access
  bool inside_one = false;                             // both ends are words of one lock or one condition variable
  std::uint64_t offset = 0;                            // in the object
  double cost_s = 0, weight = 0;                       // weight: of what was seen
};

}  // namespace crosstalk::attribution
