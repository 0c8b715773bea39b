// SPDX-License-Identifier: Apache-2.0
// The functions that stand in for libc's, as the core sees them. Implemented by interpose/.
#pragma once

namespace crosstalk::in_target {

// Exec and spawn (exec.cpp).

/// Core calls after it attached, before main: copies our LD_PRELOAD entry and the arena's name, so that children get
/// them whatever the target does to its environment. With follow_children == 0 takes both out of the environment, so
/// that children of system() and popen() are not observed either.
void remember_environment();
/// Core calls once the process is observed: the target does not see what makes it so (child_environment.h).
void hide_environment();
/// Core calls in a forked child, observed or not.
void environment_after_fork();
/// Looks up functions that may be called in a vfork child.
void prepare_exec_wrappers();

// Modules that were loaded before this library (got_patches.cpp).

enum class Patched {
  all,
  not_yet,  // but for modules that the loader is still working at
  not_all,  // there are more places than are provided for
};
/// Makes modules call the functions that we stand in for: changes entries of their tables of addresses (GOT) that
/// contain the real function's address, or none yet. Normal context.
Patched patch_modules();
/// Does the same for modules loaded since. Does nothing if patch_modules() was not called.
Patched patch_new_modules();
/// Puts back entries that are still as we changed them. Normal context.
void unpatch_modules();
/// Does the same in a forked child, which has no other threads, and whose copy of the loader's lock may be taken for
/// ever.
void unpatch_modules_in_child();

}  // namespace crosstalk::in_target
