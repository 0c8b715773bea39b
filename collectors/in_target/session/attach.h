// SPDX-License-Identifier: Apache-2.0
// Steps that the two ways of attaching a process to an arena have in common: at the program's start (attach.cpp) and in
// a process that runs already (injected.cpp). Normal context.
#pragma once

#include <cstdint>

namespace crosstalk::in_target {

/// Why the program is better left alone, the recorder being process `recorder`; null: it can be observed.
const char* why_not_observed(std::int32_t recorder);
/// Makes the vdso read the time, if possible.
void find_fast_clock();
/// Sets up the budget, the watch unit and the bulletin board by the session's settings.
void set_up_watching();

}  // namespace crosstalk::in_target
