// SPDX-License-Identifier: Apache-2.0
// The signal of POSIX timers' clocks: the kernel's number 32, which glibc keeps for pthread_cancel. libc lets no
// program block it, wait for it, put it into a set or install a handler, so the clock takes nothing from the target,
// and needs no fake mask or disposition. It is shared with libc:
//
//   ours      si_code is SI_TIMER and the value is ours. libc's handler ignores everything but SI_TKILL, so
//             a tick that meets it is lost and does no harm;
//   libc's    everything else goes on to the handler that libc has installed, or would have.
//
// libc installs its handler with a system call of its own, at the first pthread_cancel() (older versions: at the
// start). So our handler is put back after each pthread_cancel(), and passes signals on to the handler that it found
// there.
#pragma once

#include <signal.h>

#include "collectors/in_target/sys/kernel_signals.h"

namespace crosstalk::in_target {

inline constexpr int clock_signal = 32;

/// Puts our handler in place. False: this is impossible, and no POSIX timer may be started. Normal context, after a
/// handler was installed with libc's sigaction(), because it gives the code that handlers return to.
bool take_clock_signal(void (*handler)(int, siginfo_t*, void*), std::uint64_t flags);
/// True if it has been taken. Signal-safe.
bool has_clock_signal();
/// Puts our handler back if libc has replaced it. Does nothing if it was not taken. Signal-safe.
void keep_clock_signal();
/// Puts the earlier action back, because the target is about to install a handler of its own by the system call itself.
void release_clock_signal();
/// Returns the action that the signal would have without us. Signal-safe.
KernelAction clock_signal_wish();

}  // namespace crosstalk::in_target
