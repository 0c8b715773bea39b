// SPDX-License-Identifier: Apache-2.0
// From own_signals() on the target neither replaces our handler nor blocks our signal, and sees its own wishes when it
// asks. Functions are the core's to call.
#pragma once

#include <signal.h>

#include <cstdint>

namespace crosstalk::in_target {

/// Core calls before it installs its handlers (the present one is the target's wish).
void own_signals(int trap_signal);
/// Called for a foreign trap signal in the calling thread. Returns true if the target has blocked it there. Then blocks
/// it in the thread's mask of `context` (a ucontext_t), and leaves masks alone in the whole process. In our handler
/// only.
bool block_trap_as_wished(void* context);
/// The target's wish for the trap signal is in force again, and nothing is filtered: the handler is its own.
void disown_signals();
/// Leaves the target's masks alone: a thread that blocks the trap signal is not watched meanwhile.
void leave_masks_alone();
/// Returns the target's action for the trap signal: never null, SIG_DFL if it never set one. Any context.
const struct sigaction* target_trap_action();
/// libc's functions, unfiltered, for the core. As sigaction(2) and pthread_sigmask(3).
int real_sigaction(int signal_number, const struct sigaction* action, struct sigaction* old_action);
int real_sigmask(int how, const sigset_t* set, sigset_t* old_set);
/// Core calls on each thread it is about to observe: our signals, if blocked, are unblocked and remembered
/// as blocked by the target.
void adopt_thread_mask();
/// A thread inherits its creator's mask: core takes this in the creator (pthread_create) and hands it to
/// inherit_mask_shadow() in the new thread. Opaque bits.
std::uint8_t mask_shadow();
void inherit_mask_shadow(std::uint8_t bits);

}  // namespace crosstalk::in_target
