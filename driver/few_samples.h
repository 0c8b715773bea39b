// SPDX-License-Identifier: Apache-2.0
// What `crosstalk record` ends with where hardly anything was sampled.
#pragma once

#include "daemon/record_options.h"
#include "driver/record_options.h"

namespace crosstalk::driver {

/// Says in a line why there are few samples or none, and what to do; nothing where there are enough.
void say_why_few_samples(const RecordRequest& request, const daemon::RecordOutcome& outcome);

}  // namespace crosstalk::driver
