// SPDX-License-Identifier: Apache-2.0
// All that weighted stacks follow from.
#pragma once

#include <span>

#include "attribution/estimate/located.h"
#include "attribution/model/model.h"
#include "attribution/objects/data_objects.h"
#include "attribution/program/program_view.h"
#include "attribution/samples/sample_digest.h"
#include "attribution/stacks/sampled_stacks.h"

namespace crosstalk::attribution {

struct StacksWanted {
  bool lend = true;  // samples without a stack take the callers of others at the same place (lenders.h)
};

/// All must outlive the call.
struct StackInputs {
  const ProgramView& view;
  const StackTable& stacks;  // with those of `samples` and of the contributions
  const SampledStacks& samples;
  std::span<const CodeTotal> code;  // the digest's sums
  std::span<const ThreadTotal> totals;
  std::span<const ThreadSummary> threads;
  std::span<const LocatedContribution> located;  // of `contributions`
  std::span<const Contribution> contributions;
  const Expansion& expansion;
  const DataObjects& objects;
  const Communication& communication;  // finished
};

}  // namespace crosstalk::attribution
