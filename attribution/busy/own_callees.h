// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "attribution/model/model.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution {

/// Short names of functions of the same file that the loop calls directly. Leaves out stubs, which lead to other files.
[[nodiscard]] std::vector<std::string> own_callees_of(const LoopRow& loop, const ProgramView& view);

}  // namespace crosstalk::attribution
