// SPDX-License-Identifier: Apache-2.0
// Resource limits (ulimit) that the user set for the command. The recorder needs more, and the command must find them
// unchanged.
#pragma once

#include <cstdint>
#include <string>

namespace crosstalk::daemon {

/// Raises this process's limits on files, memory, processor time and descriptors as far as allowed, and makes a write
/// beyond the file size limit fail instead of kill. Call it once, before there are threads; later threads get stacks of
/// the usual size.
void widen_own_limits();

/// Restores the limits. Async-signal-safe: for a fork's child.
void restore_limits();

/// Calls `run`, on a new stack if the stack limit is too small.
int with_enough_stack(int (*run)(int, char**), int count, char** words);

/// Returns the largest possible file size of this process, bytes.
[[nodiscard]] std::uint64_t largest_file();

/// Returns a clause that names the limit that leaves no room for our library in the command; empty if none does.
[[nodiscard]] std::string limit_against_library();

/// True if files cannot be created, for lack of descriptors or by the file size limit.
[[nodiscard]] bool files_are_limited();

}  // namespace crosstalk::daemon
