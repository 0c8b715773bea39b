// SPDX-License-Identifier: Apache-2.0
// Decides if the library can be brought into a running process, as far as this is known before anything in it is
// touched.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace crosstalk::injector {

/// Refuses, in one line, a process that is traced or stopped, runs as another user, in other namespaces or inside a
/// seccomp filter, is of a kind that the library cannot live in, or cannot see the file `library`.
[[nodiscard]] Result<void> check_injectable(pid_t pid, const std::string& library);

/// Returns why this thread may not make system calls of ours, on descriptors of the process: it is inside a seccomp
/// filter, or has descriptors of its own. Empty: it may.
[[nodiscard]] std::string why_no_calls_by(pid_t pid, pid_t tid);

}  // namespace crosstalk::injector
