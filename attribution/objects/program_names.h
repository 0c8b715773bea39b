// SPDX-License-Identifier: Apache-2.0
// What a user calls a program, which may be a link to a file of another name.
#pragma once

#include <span>
#include <string>

#include "profile/model.h"

namespace crosstalk::attribution {

/// The last component of a path.
[[nodiscard]] std::string base_name(const std::string& path);

/// Of a shell-quoted command: the last component of its first word, and all words behind that.
[[nodiscard]] std::string program_of(const std::string& command);
[[nodiscard]] std::string arguments_of(const std::string& command);

/// What the process's program is called: as it was started where that is a name of its own (a link to the file, as
/// `redis-server` is one to `redis-check-rdb`), else as its file.
[[nodiscard]] std::string program_name(const profile::ProcessRow& process);

/// What a module is called: a program as above, where all processes that run it were started by one name, anything else
/// as its file.
[[nodiscard]] std::string module_name(std::span<const profile::ProcessRow> processes, const std::string& path);

}  // namespace crosstalk::attribution
