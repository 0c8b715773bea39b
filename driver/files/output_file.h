// SPDX-License-Identifier: Apache-2.0
// The file that `record` writes: expands its name and checks that it can be written.
#pragma once

#include <ctime>
#include <string>

#include "base/result.h"

namespace crosstalk::driver {

struct NameFacts {
  int pid = 0;       // %p: the recorder's
  std::string host;  // %h: uname -n
  std::tm time{};    // %t: local time, as 20300131-235959
};
/// Returns the facts of this process, host and moment.
[[nodiscard]] NameFacts name_facts();

/// Replaces %p, %h, %t and %%. Fails on any other sequence, which is reserved.
[[nodiscard]] Result<std::string> expand_name(const std::string& name, const NameFacts& facts);

/// Makes the parent directories, and checks that a file can be made in the last one by making an unnamed file. An
/// existing `path` must be a regular file. Leaves nothing behind except for the directories.
[[nodiscard]] Result<void> check_writable(const std::string& path);

}  // namespace crosstalk::driver
