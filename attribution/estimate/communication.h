// SPDX-License-Identifier: Apache-2.0
// Communications, each with its cost, filed by thread, by core, by source line, by pair of lines and by object.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/estimate/amounts.h"
#include "attribution/estimate/code_sites.h"
#include "attribution/estimate/evidence.h"
#include "attribution/model.h"
#include "attribution/objects/data_objects.h"
#include "attribution/objects/program_view.h"
#include "attribution/timeline/sample_digest.h"
#include "attribution/timeline/seen.h"

namespace crosstalk::attribution {

/// Everything that is known of communication. All spans must outlive their use.
struct CommunicationInputs {
  std::span<const OwnershipTimeline> timelines;  // by watch
  std::span<const Contribution> contributions;
  const Expansion& expansion;
  std::span<const SampledAccess> sampled;  // on lines that saw communication
  std::size_t max_rows = 100;
};

[[nodiscard]] Communication communication_of(const CommunicationInputs& inputs, const ProgramView& view,
                                             const StackTable& stacks, DataObjects& objects);

/// What both ends of a contribution mean. There may be millions.
struct LocatedContribution {
  std::uint32_t producer_site = 0, consumer_site = 0;  // indices into SiteTable
  DataRef object;                                      // that the consumer accessed
  double cost_s = 0, weight = 0;                       // weight: of what was seen
  Purpose purpose = Purpose::data;                     // of the consumer's access
};

// `located` goes with the inputs' contributions.
[[nodiscard]] std::vector<LineRow> line_rows(std::span<const LocatedContribution> located, const SiteTable& sites,
                                             const CommunicationInputs& inputs, const ProgramView& view,
                                             const StackTable& stacks);
[[nodiscard]] std::vector<LinePair> line_pair_rows(std::span<const LocatedContribution> located, const SiteTable& sites,
                                                   const CommunicationInputs& inputs, const DataObjects& objects);
[[nodiscard]] std::vector<ObjectRow> object_rows(std::span<const LocatedContribution> located,
                                                 const CommunicationInputs& inputs, DataObjects& objects);

}  // namespace crosstalk::attribution
