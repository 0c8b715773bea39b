// SPDX-License-Identifier: Apache-2.0
// Facilities that a machine denies a recording.
#pragma once

#include <string>
#include <vector>

#include "collectors/facilities/probe.h"
#include "driver/recording/method_choice.h"
#include "profile/arena.h"
#include "profile/model.h"

namespace crosstalk::driver {

/// Returns warnings for the profile, each with a remedy.
[[nodiscard]] std::vector<profile::MessageRow> limits_of(const profile::SessionConfig& wanted,
                                                         const collectors::Probe& probe, const MethodChoice& method);

}  // namespace crosstalk::driver
