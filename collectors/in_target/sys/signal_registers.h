// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucontext.h>

#include "base/registers.h"

namespace crosstalk::in_target {

/// Returns the registers that a signal has interrupted.
Registers registers_of(const ucontext_t& context);

}  // namespace crosstalk::in_target
