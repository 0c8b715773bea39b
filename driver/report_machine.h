// SPDX-License-Identifier: Apache-2.0
// The measured figures that a report's busy times are computed with.
#pragma once

#include <optional>
#include <string>

#include "models/machine.h"
#include "profile/model.h"

namespace crosstalk::driver {

struct ReportMachine {
  std::optional<models::Machine> machine;
  std::string missing;  // why there is none, with what to do; empty: there is one
};
/// Of the machine that the profile was recorded on: from the profile itself, else from this user's machine file. One of
/// another machine or version, or that makes no sense, is of no use.
[[nodiscard]] ReportMachine machine_of(const profile::Session& session);

}  // namespace crosstalk::driver
