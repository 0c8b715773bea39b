// SPDX-License-Identifier: Apache-2.0
// A made analysis of a made program: four workers falsely share `counters`, two of them truly share `queue`.
#pragma once

#include <cstdint>

#include "attribution/model/model.h"

namespace crosstalk::driver::test {

attribution::Analysis sample_analysis();
/// The same with `threads` threads, each pair of neighbours communicating.
attribution::Analysis crowded_analysis(std::uint32_t threads);

}  // namespace crosstalk::driver::test
