// SPDX-License-Identifier: Apache-2.0
// The last words of `crosstalk record` if it took hardly any samples.
#pragma once

#include "daemon/record_options.h"
#include "driver/options/record_options.h"

namespace crosstalk::driver {

/// Prints one line that says why there are few samples or none, and what to do; nothing if there are enough.
void say_why_few_samples(const RecordRequest& request, const daemon::RecordOutcome& outcome);

}  // namespace crosstalk::driver
