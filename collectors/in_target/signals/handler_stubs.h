// SPDX-License-Identifier: Apache-2.0
// Gives each of the target's handlers that have SA_ONSTACK a stub in this library, which the kernel enters instead, for
// good. So a change of handlers is as atomic as the kernel makes it, the address that the kernel reports works, and we
// need no state of a signal beyond the kernel's. A stub moves the frame (alternate_stack.h) and jumps to its handler
// with the arguments that the kernel gave.
#pragma once

#include <signal.h>

#include <cstdint>

namespace crosstalk::in_target {

using SignalHandler = void (*)(int);

/// Returns the address that the kernel gets for a handler: the handler itself if no stubs are left.
SignalHandler stub_for(SignalHandler handler);
/// The handler behind an address that the kernel, or libc, has named.
SignalHandler behind_stub(SignalHandler address);

/// sigaction(2) by `real`, for the target: gives handlers with SA_ONSTACK stubs, and reports handlers without them.
template <class Real>
int sigaction_with_stubs(Real& real, int number, const struct sigaction* action, struct sigaction* old_action) {
  struct sigaction changed;
  if (action != nullptr && (action->sa_flags & SA_ONSTACK) != 0) {
    changed = *action;
    changed.sa_handler = stub_for(action->sa_handler);
    action = &changed;
  }
  const int result = real(number, action, old_action);
  if (result == 0 && old_action != nullptr) {
    old_action->sa_handler = behind_stub(old_action->sa_handler);
  }
  return result;
}

/// Gives stubs to the handlers that were installed before we were there. Normal context, once.
void adopt_handlers();

}  // namespace crosstalk::in_target
