// SPDX-License-Identifier: Apache-2.0
// Communications, each with its cost, filed by thread, by core, by source line, by pair of lines and by object.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attribution/estimate/amounts.h"
#include "attribution/estimate/evidence.h"
#include "attribution/model.h"
#include "attribution/objects/data_objects.h"
#include "attribution/objects/program_view.h"
#include "attribution/objects/sharing_kind.h"
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

/// A place in source code, or in code without lines.
struct CodeSite {
  std::string file, function;
  std::uint32_t line = 0;
  auto operator<=>(const CodeSite&) const = default;
};
/// What is known of the code of an access.
struct Spot {
  std::uint32_t site = 0;  // index into SiteTable
  Purpose purpose = Purpose::data;
};

/// What both ends of a contribution mean. There may be millions.
struct LocatedContribution {
  std::uint32_t producer_site = 0, consumer_site = 0;  // indices into SiteTable
  DataRef object;                                      // that the consumer accessed
  double cost_s = 0, weight = 0;                       // weight: of what was seen
  Purpose purpose = Purpose::data;                     // of the consumer's access
};

/// Code sites by run-time address and, in libraries, by who calls them; symbolized once each. Sites are the program's
/// own code (own_code.h).
class SiteTable {
 public:
  SiteTable(const ProgramView& view, const StackTable& stacks) : view_(view), stacks_(stacks) {}
  [[nodiscard]] Spot of(const AccessPoint& point);
  [[nodiscard]] const CodeSite& operator[](std::uint32_t site) const { return sites_[site]; }
  /// The library's function that the site called where it was first seen; empty: the site itself.
  [[nodiscard]] const std::string& through(std::uint32_t site) const { return through_[site]; }
  /// By site, its place in the order of file, function and line.
  [[nodiscard]] std::vector<std::uint32_t> ranks() const;

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;
  [[nodiscard]] Spot look_up(Moment moment, const AccessPoint& point, std::span<const std::uint64_t> stack);

  const ProgramView& view_;
  const StackTable& stacks_;
  std::map<Key, std::optional<Spot>> by_address_;  // nullopt: it depends on the callers
  std::map<std::pair<Key, std::vector<std::uint64_t>>, Spot> by_callers_;
  std::map<CodeSite, std::uint32_t> ids_;
  std::vector<CodeSite> sites_;
  std::vector<std::string> through_;
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
