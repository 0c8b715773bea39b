// SPDX-License-Identifier: Apache-2.0
// What a machine withholds from a recording.
#pragma once

#include <string>
#include <vector>

#include "collectors/probe.h"
#include "driver/method_choice.h"
#include "profile/arena.h"
#include "profile/model.h"

namespace crosstalk::driver {

/// As warnings that the profile keeps, each with what would help.
[[nodiscard]] std::vector<profile::MessageRow> limits_of(const profile::SessionConfig& wanted,
                                                         const collectors::Probe& probe, const MethodChoice& method);

}  // namespace crosstalk::driver
