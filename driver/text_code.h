// SPDX-License-Identifier: Apache-2.0
// Machine code with what its instructions cost beside them.
#pragma once

#include <string>

#include "attribution/code/code_choice.h"
#include "attribution/model.h"
#include "driver/text_canvas.h"

namespace crosstalk::driver {

/// Under the head of the report, the functions of `analysis.code`, each instruction under its source line. What lies
/// far from any instruction with figures is left out; where a line is `wanted`, what is far from its instructions.
/// Sources are looked for under `sysroot`, too.
[[nodiscard]] std::string render_code(const attribution::Analysis& analysis, const attribution::CodeWanted& wanted,
                                      const std::string& sysroot, TextStyle style);

}  // namespace crosstalk::driver
