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

/// Rows of all parts of that view in one table; column `part` names the part.
[[nodiscard]] std::string memory_csv(const attribution::Memory& memory);

/// Returns one field, quoted if necessary. Control characters except for line breaks and tabs become \xNN, because
/// names come from programs.
[[nodiscard]] std::string csv_field(const std::string& text);

}  // namespace crosstalk::driver
