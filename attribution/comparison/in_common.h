// SPDX-License-Identifier: Apache-2.0
// Tells if two profiles are of versions of one program.
#pragma once

#include "attribution/model/model.h"

namespace crosstalk::attribution::comparison {

/// True if the programs have one name, or if both profiles show a source file, a function or a variable of the
/// program's own. Code and data of libraries and of the system do not count: every program has them.
[[nodiscard]] bool have_in_common(const Analysis& before, const Analysis& after);

}  // namespace crosstalk::attribution::comparison
