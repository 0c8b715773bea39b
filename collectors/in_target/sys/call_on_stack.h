// SPDX-License-Identifier: Apache-2.0
// Calls a signal handler on another stack. Unwinders see through it.
#pragma once

#include <signal.h>

#include <cstdint>

namespace crosstalk::in_target {

using SignalAction = void (*)(int, siginfo_t*, void*);

/// `top`: the upper end of the other stack, a multiple of 16. Takes 24 bytes of the present one. Signal-safe.
extern "C" __attribute__((visibility("hidden"))) void crosstalk_call_on_stack(int number, siginfo_t* info,
                                                                              void* context, SignalAction action,
                                                                              std::uint64_t top);

}  // namespace crosstalk::in_target
