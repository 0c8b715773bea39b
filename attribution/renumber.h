// SPDX-License-Identifier: Apache-2.0
// Gives the threads of an analysis other indices: those of one recording's successive files are numbered file by file.
#pragma once

#include <cstdint>
#include <functional>

#include "attribution/model/model.h"

namespace crosstalk::attribution {

/// Replaces each thread index by `number_of` it, wherever communication, loops and threads have one. Regions, places of
/// waits and the samples of the hardware are dropped: they are not shown live. Findings stay as they are written.
void renumber_threads(Analysis& analysis, const std::function<std::uint32_t(std::uint32_t)>& number_of);

}  // namespace crosstalk::attribution
