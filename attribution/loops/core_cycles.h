// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profile/model.h"
#include "symbolizer/loops/iteration_time.h"

namespace crosstalk::attribution {

/// The measured latencies of the program's core, in its cycles; a usual core's for those that were not measured.
[[nodiscard]] inline symbolizer::CoreCycles cycles_of(const profile::CoreTimes& core) {
  symbolizer::CoreCycles cycles;
  if (core.cycle_ps != 0) {
    cycles.locked = core.locked_ps != 0 ? static_cast<double>(core.locked_ps) / core.cycle_ps : cycles.locked;
    cycles.forward = core.forward_ps != 0 ? static_cast<double>(core.forward_ps) / core.cycle_ps : cycles.forward;
  }
  return cycles;
}

}  // namespace crosstalk::attribution
