// SPDX-License-Identifier: Apache-2.0
// Describes this machine from its processor and the kernel, without measuring.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "models/machine.h"

namespace crosstalk::collectors::calibration {

/// Identity, names, memory, processors and caches of this machine; no figures. Processors that this process may not
/// use are in it. Some milliseconds.
[[nodiscard]] Result<models::Machine> describe_machine();

/// The processors that this thread may run on, ascending.
[[nodiscard]] std::vector<std::uint32_t> usable_processors();

/// The first of `usable` on each physical core of `machine`.
[[nodiscard]] std::vector<std::uint32_t> one_of_each_core(const models::Machine& machine,
                                                          const std::vector<std::uint32_t>& usable);

/// Returns how many of `cpus` share the cache of `level` that the first of them uses; 1 if the machine has none.
[[nodiscard]] unsigned sharers(const models::Machine& machine, std::uint32_t level,
                               const std::vector<std::uint32_t>& cpus);

}  // namespace crosstalk::collectors::calibration
