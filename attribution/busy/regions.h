// SPDX-License-Identifier: Apache-2.0
// Regions that the program marks (include/crosstalk/region.h): the time of each thread in each, which the thread knows
// to the nanosecond, and its activity there, by samples, measured waits, and loops.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "attribution/loops/loop_index.h"
#include "attribution/model/model.h"
#include "attribution/samples/sample_digest.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// Data of regions and of the threads in them, by index.
struct RegionFacts {
  std::span<const profile::RegionRow> regions;
  std::span<const profile::ThreadRegionRow> threads;
  const SampleDigest::InRegions& samples;
  std::span<const CodeTotal> code;
  std::span<const ThreadTotal> of_threads;        // samples of each thread, all together
  std::span<const std::optional<Waited>> waited;  // absent: the thread's waits were not measured
};

/// In order of their paths, a region right before its inner ones. `threads` are the profile's, by index; `loops` and
/// `index` those of the analysis. Leaves out rows of unknown threads.
[[nodiscard]] std::vector<RegionSummary> region_summaries(const RegionFacts& facts,
                                                          std::span<const ThreadSummary> threads,
                                                          std::span<const LoopRow> loops, const LoopIndex& index);

}  // namespace crosstalk::attribution
