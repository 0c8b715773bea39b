// SPDX-License-Identifier: Apache-2.0
// The two signal handlers: the clock's and the debug registers'.
#pragma once

namespace crosstalk::in_target {

/// Puts the handlers in place. Normal context, once, after own_signals().
void install_handlers();

}  // namespace crosstalk::in_target
