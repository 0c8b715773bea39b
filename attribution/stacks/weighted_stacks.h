// SPDX-License-Identifier: Apache-2.0
// Joins samples, stacks and communication into weighted call stacks.
#pragma once

#include "attribution/model/stack_model.h"
#include "attribution/stacks/stack_inputs.h"

namespace crosstalk::attribution {

/// A pure function of its arguments, and of the files that the view reads.
[[nodiscard]] WeightedStacks weighted_stacks(const StackInputs& inputs, const StacksWanted& wanted);

}  // namespace crosstalk::attribution
