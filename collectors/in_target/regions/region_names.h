// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "profile/arena.h"

namespace crosstalk::in_target {

/// Returns the number of a region's name among those of the session, and enters a new one; null counts as "(unnamed)".
/// 0: there is no room. Bounded, waits for nobody: while another thread enters a name, the same name may get a second
/// number. Signal-safe.
[[nodiscard]] std::uint32_t number_of_name(profile::ArenaHeader& arena, const char* name);

}  // namespace crosstalk::in_target
