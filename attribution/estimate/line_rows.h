// SPDX-License-Identifier: Apache-2.0
// Communications by source line, and by pair of source lines and object.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attribution/estimate/code_sites.h"
#include "attribution/estimate/located.h"
#include "attribution/estimate/row_table.h"
#include "attribution/model/model.h"
#include "attribution/objects/data_objects.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution {

/// Lines in each role. `located` matches the inputs' contributions; all arguments must outlive this.
class LineTable {
 public:
  LineTable(std::span<const LocatedContribution> located, const SiteTable& sites, const CommunicationInputs& inputs);
  /// Takes every contribution, in order. Independent of find_call_paths(), so that both may run at the same time.
  void add_amounts(const LocatedContribution& located, const Summand& summand);
  void find_call_paths(const ProgramView& view, const StackTable& stacks);
  [[nodiscard]] std::vector<LineRow> finish();

 private:
  [[nodiscard]] std::uint32_t group(std::uint32_t site, Role role) const {
    return 2 * rank_[site] + (role == Role::consumer ? 1 : 0);
  }

  std::span<const LocatedContribution> located_;
  const SiteTable& sites_;
  const CommunicationInputs& inputs_;
  std::vector<std::uint32_t> rank_;  // by site
  RowTable table_;
  std::vector<std::vector<CallPath>> paths_;  // by row
};

/// Pairs of lines, used in the same way.
class LinePairTable {
 public:
  LinePairTable(std::span<const LocatedContribution> located, const SiteTable& sites, const CommunicationInputs& inputs,
                const DataObjects& objects);
  void add_amounts(std::size_t contribution, const Summand& summand) {
    table_.add_amounts(group_of_[contribution], summand);
  }
  [[nodiscard]] std::vector<LinePair> finish();

 private:
  RowTable table_;
  std::vector<std::uint32_t> group_of_;  // by contribution
  std::vector<LinePair> rows_;           // but for their amounts
};

}  // namespace crosstalk::attribution
