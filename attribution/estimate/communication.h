// SPDX-License-Identifier: Apache-2.0
// Files communications with their costs by thread, core, source line, pair of lines and object.
#pragma once

#include <span>
#include <vector>

#include "attribution/estimate/code_sites.h"
#include "attribution/estimate/located.h"
#include "attribution/model/model.h"
#include "attribution/objects/data_objects.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution {

/// Files contributions by their code and data. All arguments must outlive this.
class CommunicationFiler {
 public:
  CommunicationFiler(const ProgramView& view, const StackTable& stacks, DataObjects& objects)
      : view_(view), stacks_(stacks), objects_(objects), sites_(view, stacks) {}
  /// First step: finds the code and data of the contributions. Needs no counts.
  void locate(std::span<const Contribution> contributions, const Expansion& expansion);
  /// Second step, with the same contributions: computes their amounts.
  [[nodiscard]] Communication file(const CommunicationInputs& inputs);
  /// The contributions of locate(), with their code and data.
  [[nodiscard]] std::span<const LocatedContribution> located() const { return located_; }

 private:
  const ProgramView& view_;
  const StackTable& stacks_;
  DataObjects& objects_;
  SiteTable sites_;
  std::vector<LocatedContribution> located_;
};

[[nodiscard]] Communication communication_of(const CommunicationInputs& inputs, const ProgramView& view,
                                             const StackTable& stacks, DataObjects& objects);

}  // namespace crosstalk::attribution
