// SPDX-License-Identifier: Apache-2.0
// Reports programs that go unobserved, and decides when a process is one.
#pragma once

namespace crosstalk::in_target {

/// Returns false, and tells the recorder, if this process has a pid namespace of its own: its ids mean nothing to the
/// recorder.
bool in_recorders_pid_namespace();

}  // namespace crosstalk::in_target
