// SPDX-License-Identifier: Apache-2.0
// Finds the measured figures that a report's busy times are computed with.
#pragma once

#include <optional>
#include <string>

#include "models/machine.h"
#include "profile/model.h"

namespace crosstalk::driver {

struct ReportMachine {
  std::optional<models::Machine> machine;
  std::string missing;  // why there is none and what to do; else empty
};
/// Returns the figures of the machine that recorded the profile: from the profile, else from this user's machine file.
/// Ignores figures of another machine or version, and malformed ones.
[[nodiscard]] ReportMachine machine_of(const profile::Session& session);

}  // namespace crosstalk::driver
