// SPDX-License-Identifier: Apache-2.0
// One view as a CSV table (RFC 4180 quoting, LF line ends) with a header row. Column names are those of the JSON
// report, joined by dots if they nest. Unknown values are empty fields.
#pragma once

#include <string>

#include "attribution/groups.h"
#include "attribution/model/model.h"
#include "driver/options/report_options.h"

namespace crosstalk::driver {

/// With `groups`, the matrix and the threads are those of the groups.
[[nodiscard]] std::string render_csv(const attribution::Analysis& analysis, View view,
                                     const attribution::Grouping* groups = nullptr);

}  // namespace crosstalk::driver
