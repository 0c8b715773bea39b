// SPDX-License-Identifier: Apache-2.0
// Weighted stacks as text for flame graphs: "outermost;...;innermost COUNT", a line for each stack.
#pragma once

#include <string>

#include "attribution/model/model.h"
#include "driver/options/export_options.h"

namespace crosstalk::driver {

struct CollapsedView {
  StackValue value = StackValue::cpu;
  bool by_thread = false;  // the thread is the outermost frame
};

/// Counts are microseconds, and the event's units where no times are known; stacks that round to 0 are left out. Lines
/// are sorted. `analysis.stacks` must be there.
[[nodiscard]] std::string render_collapsed(const attribution::Analysis& analysis, const CollapsedView& view);

}  // namespace crosstalk::driver
