// SPDX-License-Identifier: Apache-2.0
// The report as JSON: the interface "crosstalk.report/1" of docs/report-json.md.
#pragma once

#include <optional>
#include <string>

#include "attribution/model.h"
#include "driver/report_options.h"

namespace crosstalk::driver {

/// One JSON object with a newline at its end. With a view: the head and that part.
[[nodiscard]] std::string render_json(const attribution::Analysis& analysis, std::optional<View> view);

}  // namespace crosstalk::driver
