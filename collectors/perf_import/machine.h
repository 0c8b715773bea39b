// SPDX-License-Identifier: Apache-2.0
// Converts a recording's description of its machine and of itself to a session of a profile.
#pragma once

#include "collectors/perf_data/features.h"
#include "profile/model.h"

namespace crosstalk::perf_import {

void describe_machine(const perf_data::Features& features, profile::Session& session);

}  // namespace crosstalk::perf_import
