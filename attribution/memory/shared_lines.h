// SPDX-License-Identifier: Apache-2.0
// Lines of memory that threads share, by samples: the accessing threads, offsets and code, and the places of loads'
// data. The same as `perf c2c report`, in its order: most loads of the modified line first.
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

/// The sources of data for rows.
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
