// SPDX-License-Identifier: Apache-2.0
// Assembles the results of hardware samples of memory accesses.
#pragma once

#include <cstddef>

#include "attribution/memory/memory_samples.h"
#include "attribution/model/model.h"
#include "attribution/objects/data_objects.h"
#include "base/result.h"
#include "profile/reader.h"

namespace crosstalk::attribution {

struct MemoryInputs {
  const profile::ProfileReader& profile;
  const ProgramView& view;
  DataObjects& objects;
  const SharedIndex& shared;
  std::span<const LoopRow> loops;  // all that samples fell into
  const MemorySamples& samples;
};

/// Reads chains of calls from the profile; fails if they cannot be read.
[[nodiscard]] Result<Memory> memory_view(const MemoryInputs& inputs, std::size_t max_rows);

}  // namespace crosstalk::attribution
