// SPDX-License-Identifier: Apache-2.0
// Reads which processors of this machine share cores, caches and sockets.
#pragma once

#include <string>

#include "profile/topology.h"

namespace crosstalk::daemon {

/// Reads the online processors' topology from `root` (/sys/devices/system); missing files leave fields absent.
[[nodiscard]] profile::Topology read_topology(const std::string& root = "/sys/devices/system");

}  // namespace crosstalk::daemon
