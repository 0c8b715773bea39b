// SPDX-License-Identifier: Apache-2.0
// Names the place with most of the CPU time in a sentence.
#pragma once

#include "attribution/model/model.h"

namespace crosstalk::attribution {

/// The function or loop with most CPU time, or a system call that takes more. Code of a library or the kernel is
/// described by the program's own functions that call it. Ignores the collector's own code. An empty sentence if
/// nothing takes much, and without samples.
[[nodiscard]] Finding hottest(const Analysis& analysis);

/// The kernel's total time by system call, if it is much. `first`: the finding of hottest().
[[nodiscard]] Finding in_the_kernel(const Analysis& analysis, const Finding& first);

}  // namespace crosstalk::attribution
