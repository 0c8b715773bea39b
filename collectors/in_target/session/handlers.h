// SPDX-License-Identifier: Apache-2.0
// The two signal handlers: the clock's and the debug registers'.
#pragma once

namespace crosstalk::in_target {

/// Puts the handlers in place. Normal context, once, after own_signals().
void install_handlers();
/// Takes them out again, if they are still there, and puts back what the target wished for.
void remove_handlers();
/// False: the target has a use for the signal by which processes kick each other. Signal-safe.
bool install_kick_handler();

}  // namespace crosstalk::in_target
