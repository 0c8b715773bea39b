// SPDX-License-Identifier: Apache-2.0
// Reports programs that go unobserved, and decides when a process is one.
#pragma once

namespace crosstalk::in_target {

/// False: this process has a pid namespace of its own, so its ids mean nothing to the recorder. Also tells it so.
bool in_recorders_pid_namespace();

}  // namespace crosstalk::in_target
