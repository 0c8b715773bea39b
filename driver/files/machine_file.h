// SPDX-License-Identifier: Apache-2.0
// Stores the machine's measured figures between `crosstalk calibrate` and the profiles and reports that use them.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "models/machine.h"

namespace crosstalk::driver {

/// Returns the path of crosstalk/machine.json in $XDG_CONFIG_HOME, or in ~/.config. Fails if neither variable is set.
[[nodiscard]] Result<std::string> machine_file_path();

/// Reads and checks a file. An error names the file and the wrong field.
[[nodiscard]] Result<models::Machine> read_machine_file(const std::string& path);

/// Writes the whole file or nothing.
[[nodiscard]] Result<void> write_machine_file(const std::string& path, const models::Machine& machine);

/// Returns the text of this machine's file, to be stored in a profile; empty if there is no file. Fails if it belongs
/// to another machine or version, or is malformed.
[[nodiscard]] Result<std::string> stamp_of_this_machine();

}  // namespace crosstalk::driver
