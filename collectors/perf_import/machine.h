// SPDX-License-Identifier: Apache-2.0
// What a recording says of its machine and of itself, as a session of a profile has it.
#pragma once

#include "collectors/perf_data/features.h"
#include "profile/model.h"

namespace crosstalk::perf_import {

void describe_machine(const perf_data::Features& features, profile::Session& session);

}  // namespace crosstalk::perf_import
