// SPDX-License-Identifier: Apache-2.0
// The file that `record` writes: its name, and whether it can be written.
#pragma once

#include <ctime>
#include <string>

#include "base/result.h"

namespace crosstalk::driver {

struct NameFacts {
  int pid = 0;       // %p: of the recorder
  std::string host;  // %h: uname -n
  std::tm time{};    // %t: local time, as 20300131-235959
};
/// The facts of now and here.
[[nodiscard]] NameFacts name_facts();

/// Replaces %p, %h, %t and %%. Any other sequence is refused: it may mean something one day.
[[nodiscard]] Result<std::string> expand_name(const std::string& name, const NameFacts& facts);

/// Makes the parent directories and sees whether a file can be made in the last one, by making a nameless one.
/// An existing `path` must be a regular file. Nothing is left behind but the directories.
[[nodiscard]] Result<void> check_writable(const std::string& path);

}  // namespace crosstalk::driver
