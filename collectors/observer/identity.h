// SPDX-License-Identifier: Apache-2.0
// Checks that a process is the one that was meant, for services that watch processes of others. /proc and process ids
// alone do not prove it: an id is reused, and a program may change its user.
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace crosstalk::observer {

/// Fails unless the process belongs to `owner` (process_owner()): to root, if it has other rights than its user.
/// Errors: not_found (it has ended), permission.
[[nodiscard]] Result<void> check_owner(pid_t pid, uid_t owner);

/// Fails unless `pidfd` is a descriptor of process `pid` (pidfd_open(2)) that has not ended. Error: refused.
[[nodiscard]] Result<void> check_pidfd(pid_t pid, int pidfd);

}  // namespace crosstalk::observer
