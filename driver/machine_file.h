// SPDX-License-Identifier: Apache-2.0
// Where the machine's measured figures are kept, between `crosstalk calibrate` and the profiles and reports that use
// them.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "models/machine.h"

namespace crosstalk::driver {

/// crosstalk/machine.json in $XDG_CONFIG_HOME, or in ~/.config. Not found when there is neither variable.
[[nodiscard]] Result<std::string> machine_file_path();

/// Reads and checks a file. An error names it, and the field that is wrong.
[[nodiscard]] Result<models::Machine> read_machine_file(const std::string& path);

/// Writes all of it or nothing, as the next.
[[nodiscard]] Result<void> replace_file(const std::string& path, const std::string& text);
[[nodiscard]] Result<void> write_machine_file(const std::string& path, const models::Machine& machine);

/// The text of this machine's file, to be stamped into a profile; empty when there is no file. Refused when it is of
/// another machine or version or makes no sense.
[[nodiscard]] Result<std::string> stamp_of_this_machine();

}  // namespace crosstalk::driver
