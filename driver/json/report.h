// SPDX-License-Identifier: Apache-2.0
// The report as JSON: the interface "crosstalk.report/1" of docs/report-json.md.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "attribution/groups.h"
#include "attribution/model/model.h"
#include "driver/options/report_options.h"

namespace crosstalk::driver {

/// Returns the report as one JSON object. With a view: the head and that part.
[[nodiscard]] nlohmann::ordered_json report_document(const attribution::Analysis& analysis, std::optional<View> view,
                                                     const attribution::Grouping* groups = nullptr);

/// Returns one JSON object with a newline at its end. With a view: the head and that part. With `groups`, a part of
/// their own beside the threads.
[[nodiscard]] std::string render_json(const attribution::Analysis& analysis, std::optional<View> view,
                                      const attribution::Grouping* groups = nullptr);

}  // namespace crosstalk::driver
