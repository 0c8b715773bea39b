// SPDX-License-Identifier: Apache-2.0
// From a sample of a memory event to the access that it is of, by what the processor has said and, where that leaves
// something open, by the sampled instruction itself.
#pragma once

#include <cstdint>

#include "collectors/in_target/access/finder.h"
#include "collectors/observation.h"
#include "collectors/observer/perf_records.h"
#include "collectors/observer/sample_view.h"
#include "collectors/pmu/memory_events.h"

namespace crosstalk::observer {

enum class Measured : std::uint8_t {
  access,          // it is in the observation
  in_kernel,       // sampled where the program was not
  no_access,       // an instruction that touches no memory, or whose address the processor could not tell
  half_an_update,  // the store of an instruction that also loads there: samples of its load stand for both
};

/// Fills in what is known of the access: its address, width and kind, the instruction, latency and data source.
[[nodiscard]] Measured measured_access(const PerfSample& sample, const collectors::MemoryEvent& event, SampleView& view,
                                       in_target::AccessFinder& finder, collectors::Observation& seen);

}  // namespace crosstalk::observer
