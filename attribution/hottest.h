// SPDX-License-Identifier: Apache-2.0
// Where most of the CPU time goes, in a sentence.
#pragma once

#include "attribution/model.h"

namespace crosstalk::attribution {

/// The function or loop that holds most, or the system call where one takes more than any of them: by its name, and of
/// what a library or the kernel does, by which of the program's own functions call it. The collector's own code is none
/// of it. An empty sentence where nothing takes much, and without samples.
[[nodiscard]] Finding hottest(const Analysis& analysis);

/// What the kernel takes altogether, where that is much, by system call. `first` is what hottest() has said.
[[nodiscard]] Finding in_the_kernel(const Analysis& analysis, const Finding& first);

}  // namespace crosstalk::attribution
