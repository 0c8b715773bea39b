// SPDX-License-Identifier: Apache-2.0
// Parts that the formats of an export share: the quantities of stacks, and names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attribution/model/model.h"
#include "attribution/model/stack_model.h"

namespace crosstalk::driver {

/// A quantity by its name and unit, as pprof has them.
struct QuantityName {
  std::string type, unit;
};
/// CPU time; of a profile without times, the event that shares are of.
[[nodiscard]] QuantityName time_quantity(const attribution::Analysis& analysis);

/// Units of time_quantity() between two samples; 0: it varies, or is not known.
[[nodiscard]] std::uint64_t sampling_period(const attribution::Analysis& analysis);

/// True if the profile has cost of communication; its gain is known at least for one sort of sharing.
[[nodiscard]] bool has_communication(const attribution::WeightedStacks& stacks);
[[nodiscard]] bool has_gain(const attribution::WeightedStacks& stacks);

/// "read", "futex_[k]" for a system call: flame graphs colour that by its end.
[[nodiscard]] std::string function_name(const attribution::StackPlace& place, const symbolizer::Frame& frame);

/// Sentences on the origin of the figures, and what they lack.
[[nodiscard]] std::vector<std::string> export_comments(const attribution::Analysis& analysis);

}  // namespace crosstalk::driver
