// SPDX-License-Identifier: Apache-2.0
// Users' names of programs. A program may be a link to a file with another name.
#pragma once

#include <span>
#include <string>

#include "profile/model.h"

namespace crosstalk::attribution {

/// The last component of a path.
[[nodiscard]] std::string base_name(const std::string& path);

/// From a shell-quoted command: the last component of its first word, and all words after it.
[[nodiscard]] std::string program_of(const std::string& command);
[[nodiscard]] std::string arguments_of(const std::string& command);

/// The name of a process's program: the name with which it was started if that is another one than its file's (a link,
/// as `redis-server` to `redis-check-rdb`), else its file's.
[[nodiscard]] std::string program_name(const profile::ProcessRow& process);

/// The name of a module: for a program as above if all processes that run it were started with one name, else its
/// file's.
[[nodiscard]] std::string module_name(std::span<const profile::ProcessRow> processes, const std::string& path);

}  // namespace crosstalk::attribution
