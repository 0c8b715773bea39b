// SPDX-License-Identifier: Apache-2.0
// Whether two profiles are of versions of one program.
#pragma once

#include "attribution/model.h"

namespace crosstalk::attribution::comparison {

/// Of one name, or with a source file, a function or a variable of the program's own in both. What any program has,
/// code and data of libraries and of the system, is nothing in common.
[[nodiscard]] bool have_in_common(const Analysis& before, const Analysis& after);

}  // namespace crosstalk::attribution::comparison
