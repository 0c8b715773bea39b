// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "profile/model.h"

namespace crosstalk::daemon {

/// Fills in a session's description of the machine: host, kernel, CPU model, CPUs, line size.
void describe_host(profile::Session& session);

[[nodiscard]] std::uint64_t own_cpu_ns();  // user and system time of this process
/// Returns this process's anonymous memory, bytes; 0 if unknown.
[[nodiscard]] std::uint64_t own_memory_bytes();

}  // namespace crosstalk::daemon
