// SPDX-License-Identifier: Apache-2.0
// Regions that the program marks (include/crosstalk/region.h): how long each thread was in each, which it knows to the
// nanosecond, and what it did there, by samples, by waits that were measured, and by the loops that it ran.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "attribution/loops/loop_index.h"
#include "attribution/model.h"
#include "attribution/timeline/sample_digest.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// What is known of regions, and of the threads that were in them, by index.
struct RegionFacts {
  std::span<const profile::RegionRow> regions;
  std::span<const profile::ThreadRegionRow> threads;
  const SampleDigest::InRegions& samples;
  std::span<const CodeTotal> code;
  std::span<const ThreadTotal> of_threads;        // samples of each thread, all together
  std::span<const std::optional<Waited>> waited;  // absent: the thread's waits were not measured
};

/// In order of their paths, a region right before those inside it. `threads` are the profile's, by index; `loops` and
/// `index` those of the analysis. Rows of threads that are not known are left out.
[[nodiscard]] std::vector<RegionSummary> region_summaries(const RegionFacts& facts,
                                                          std::span<const ThreadSummary> threads,
                                                          std::span<const LoopRow> loops, const LoopIndex& index);

}  // namespace crosstalk::attribution
