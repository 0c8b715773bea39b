// SPDX-License-Identifier: Apache-2.0
// `crosstalk record -p --inject`: loads the library into a running process, as the session's collector.
#pragma once

#include "base/result.h"
#include "driver/options/record_options.h"
#include "driver/recording/attach.h"

namespace crosstalk::driver {

/// As attach_to(), with the collector inside the process. Fails if the collector cannot be loaded.
[[nodiscard]] Result<AttachedTarget> inject_into(const RecordRequest& request);

}  // namespace crosstalk::driver
