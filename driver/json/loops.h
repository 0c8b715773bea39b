// SPDX-License-Identifier: Apache-2.0
// The loops of the JSON report: their times, rates and figures (docs/report-json.md).
#pragma once

#include <nlohmann/json.hpp>

#include "attribution/model/model.h"

namespace crosstalk::driver {

[[nodiscard]] nlohmann::ordered_json loops_json(const attribution::Analysis& analysis);

}  // namespace crosstalk::driver
