// SPDX-License-Identifier: Apache-2.0
// Machine code, with the cost of each instruction beside it.
#pragma once

#include <string>

#include "attribution/code/code_choice.h"
#include "attribution/model/model.h"
#include "driver/terminal/canvas.h"

namespace crosstalk::driver {

/// Renders the report's head and the functions of `analysis.code`, each instruction under its source line. Leaves out
/// rows far from any instruction with figures; if a line is `wanted`, rows far from its instructions. Also looks for
/// sources under `sysroot`.
[[nodiscard]] std::string render_code(const attribution::Analysis& analysis, const attribution::CodeWanted& wanted,
                                      const std::string& sysroot, TextStyle style);

}  // namespace crosstalk::driver
