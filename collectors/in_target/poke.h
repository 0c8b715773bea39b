// SPDX-License-Identifier: Apache-2.0
// A signal from one observed process to a thread of another: look at the exchange, something concerns you. It is one
// that is ignored by default, so it does nothing to a program that was executed a moment ago. A target's own handler
// must not get it: each thread's slot has a door, which its process shuts, and waits for those who are inside, before
// the signal is the target's again.
#pragma once

#include <cstdint>

#include "collectors/in_target/thread_state.h"

namespace crosstalk::in_target {

/// Signals the thread with that number, of another process. False: it is gone, its door is shut, or it belongs to
/// another user. Signal-safe; some 2 us.
bool poke(std::uint32_t number);
void open_door(profile::ThreadSlot& slot);
void shut_door(profile::ThreadSlot& slot);
/// Shuts the doors of all threads of this process. When it returns nobody will signal them: but for a signaller that
/// was stopped inside, for which it waits a few milliseconds at most. Signal-safe.
void shut_doors();
void open_doors();

}  // namespace crosstalk::in_target
