// SPDX-License-Identifier: Apache-2.0
// One view as a CSV table (RFC 4180 quoting, LF line ends) with a header row. Column names are those of the
// JSON report, joined by dots where they nest. What is not known is an empty field.
#pragma once

#include <string>

#include "attribution/groups.h"
#include "attribution/model.h"
#include "driver/report_options.h"

namespace crosstalk::driver {

/// With `groups`, the matrix and the threads are theirs.
[[nodiscard]] std::string render_csv(const attribution::Analysis& analysis, View view,
                                     const attribution::Grouping* groups = nullptr);

/// Rows of all parts of that view in one table; column `part` says which.
[[nodiscard]] std::string memory_csv(const attribution::Memory& memory);

/// One field, quoted when it has to be. Control characters, but for line breaks and tabs, are spelled \xNN: names come
/// from programs.
[[nodiscard]] std::string csv_field(const std::string& text);

}  // namespace crosstalk::driver
