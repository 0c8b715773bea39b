// SPDX-License-Identifier: Apache-2.0
// Limits of resources (ulimit) that whoever has started us meant for the command: the recorder needs more than those
// leave, and the command is to find them as they were.
#pragma once

#include <cstdint>
#include <string>

namespace crosstalk::daemon {

/// Raises the calling process's limits of files, memory, processor time and descriptors as far as it may, and has a
/// write beyond the limit of files fail, which says enough. Once, before there are threads; those made later have
/// stacks of a usual size.
void widen_own_limits();

/// Puts them back. Async-signal-safe: for a fork's child.
void restore_limits();

/// Runs it where there is room for it: on a stack made for it where the limit leaves little of the usual one.
int with_enough_stack(int (*run)(int, char**), int count, char** words);

/// Bytes that a file of this process can have.
[[nodiscard]] std::uint64_t largest_file();

/// Which of the limits that were given keeps a library of ours out of the command, as a clause; empty: none.
[[nodiscard]] std::string limit_against_library();

/// Whether files cannot be made for want of descriptors, or of bytes that files may have.
[[nodiscard]] bool files_are_limited();

}  // namespace crosstalk::daemon
