// SPDX-License-Identifier: Apache-2.0
// The order of threads in reports. Internal to the reader.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/model.h"

namespace crosstalk::profile {

/// Returns new numbers for threads: those of a process by creation, which is the order of their kernel ids unless these
/// have wrapped around. Recorders number threads as they find them.
[[nodiscard]] std::vector<std::uint32_t> numbers_by_creation(const std::vector<ThreadRow>& threads);

}  // namespace crosstalk::profile
