// SPDX-License-Identifier: Apache-2.0
// How much memory a loop goes through so that its data come from one level.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "models/machine.h"

namespace crosstalk::collectors::calibration {

/// Bytes for each of the threads on `cpus`, which work at the same time: a part of the level's cache that is well
/// beyond the levels before it, or for memory `beyond_caches` times the size of all caches. Refused if there is no such
/// size, or more than half of `available` bytes would be needed.
[[nodiscard]] Result<std::uint64_t> working_set(const models::Machine& machine, models::Level level,
                                                const std::vector<std::uint32_t>& cpus, std::uint64_t available,
                                                std::uint64_t beyond_caches = 4);

/// A little more than half of a thread's part of the level 2 cache; refused if that is not clearly more than
/// working_set() takes.
[[nodiscard]] Result<std::uint64_t> larger_working_set(const models::Machine& machine,
                                                       const std::vector<std::uint32_t>& cpus);

}  // namespace crosstalk::collectors::calibration
