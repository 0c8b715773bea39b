// SPDX-License-Identifier: Apache-2.0
// A signal from one observed process to a thread of another: look at the exchange, something concerns you. It is one
// that is ignored by default, so it does nothing to a program that was executed a moment ago. A target's own handler
// must not get it: each thread's slot has a gate, which its process shuts, and waits for those who are inside, before
// the signal is the target's again.
#pragma once

#include <cstdint>

#include "collectors/in_target/threads/thread_state.h"

namespace crosstalk::in_target {

/// Signals the thread with that number, of another process. False: it is gone, its gate is shut, or it belongs to
/// another user. Signal-safe; some 2 us.
bool kick(std::uint32_t number);
void open_gate(profile::ThreadSlot& slot);
void shut_gate(profile::ThreadSlot& slot);
/// Shuts the gates of all threads of this process. When it returns nobody will signal them: but for a signaller that
/// was stopped inside, for which it waits a few milliseconds at most. Signal-safe.
void shut_gates();
void open_gates();

}  // namespace crosstalk::in_target
