// SPDX-License-Identifier: Apache-2.0
// The hardware samples of memory accesses in the JSON report (docs/report-json.md).
#pragma once

#include <nlohmann/json.hpp>

#include "attribution/model/memory_model.h"

namespace crosstalk::driver {

[[nodiscard]] nlohmann::ordered_json memory_json(const attribution::Memory& memory);

}  // namespace crosstalk::driver
