// SPDX-License-Identifier: Apache-2.0
// Finds the access of a memory event's sample, by the processor's report and, as far as that is incomplete, by the
// sampled instruction itself.
#pragma once

#include <cstdint>

#include "collectors/access/finder.h"
#include "collectors/memory_samples/perf_records.h"
#include "collectors/memory_samples/sampled_event.h"
#include "collectors/observation.h"

namespace crosstalk::collectors {

enum class Measured : std::uint8_t {
  access,          // it is in the observation
  in_kernel,       // sampled while the kernel ran
  no_access,       // an instruction that touches no memory, or whose address the processor could not tell
  half_an_update,  // the store of an instruction that also loads there: samples of its load stand for both
};

/// Gives access to the code and, if the sample does not identify its instruction, to the memory that the way to it
/// depends on. `fs_base`: the beginning of thread-local storage; 0: not known.
struct AccessView {
  in_target::AccessFinder& finder;
  in_target::CodeReader reader;
  std::uint64_t fs_base = 0;
};

/// Fills in the known facts of the access: its address, width and kind, the instruction, latency and data source.
[[nodiscard]] Measured measured_access(const PerfSample& sample, const SampledEvent& event, const AccessView& view,
                                       Observation& seen);

}  // namespace crosstalk::collectors
