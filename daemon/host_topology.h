// SPDX-License-Identifier: Apache-2.0
// Which processors of this machine share what.
#pragma once

#include <string>

#include "profile/topology.h"

namespace crosstalk::daemon {

/// Of the processors that are online, as `root` (/sys/devices/system) says; what it does not say is absent.
[[nodiscard]] profile::Topology read_topology(const std::string& root = "/sys/devices/system");

}  // namespace crosstalk::daemon
