// SPDX-License-Identifier: Apache-2.0
// Writes the communication that a recording may not have seen, in the JSON report.
#pragma once

#include "driver/json/values.h"

namespace crosstalk::driver {

/// Limits by watches; null if there are none.
[[nodiscard]] Json unseen(const std::optional<attribution::Unseen>& found);
[[nodiscard]] Json undetected(const attribution::Undetected& found);

}  // namespace crosstalk::driver
