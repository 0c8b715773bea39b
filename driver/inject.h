// SPDX-License-Identifier: Apache-2.0
// `crosstalk record -p --inject`: the library that is brought into a running process as the session's collector.
#pragma once

#include "base/result.h"
#include "driver/attach.h"
#include "driver/record_options.h"

namespace crosstalk::driver {

/// As attach_to(), with the collector in the process. Refuses what it cannot be brought into.
[[nodiscard]] Result<AttachedTarget> inject_into(const RecordRequest& request);

}  // namespace crosstalk::driver
