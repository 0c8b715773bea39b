// SPDX-License-Identifier: Apache-2.0
// The lines of memory that threads share, by samples: who accesses them at which offsets, from which code, and where
// loads found them. What `perf c2c report` shows, and by its rank: most loads of the modified line first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attribution/memory/memory_rows.h"
#include "attribution/memory/sampled_lines.h"
#include "profile/topology.h"

namespace crosstalk::attribution {

struct SharedLines {
  Cut<SharedLine> lines;
  AccessFigures all;  // of all of them together
};

/// What is asked of while rows are made.
struct SharedLineSources {
  const ProgramView& view;
  const MemorySites& sites;
  MemoryObjects& objects;
  const profile::Topology& topology;
  std::uint32_t cycle_ps = 0;
};

[[nodiscard]] SharedLines shared_lines(const SampledLines& lines, const SharedLineSources& sources,
                                       std::size_t max_rows);

}  // namespace crosstalk::attribution
