// SPDX-License-Identifier: Apache-2.0
// One field of a CSV table (RFC 4180).
#pragma once

#include <string>

namespace crosstalk::driver {

/// Returns one field, quoted if necessary. Control characters except for line breaks and tabs become \xNN, because
/// names come from programs.
[[nodiscard]] std::string csv_field(const std::string& text);

}  // namespace crosstalk::driver
