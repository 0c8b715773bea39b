// SPDX-License-Identifier: Apache-2.0
// Weighted stacks in the format of pprof: a message Profile of profile.proto (docs/export.md).
#pragma once

#include <string>

#include "attribution/model/model.h"

namespace crosstalk::driver {

/// The message, not compressed. `analysis.stacks` must be there. The same analysis gives the same bytes.
[[nodiscard]] std::string encode_pprof(const attribution::Analysis& analysis);

}  // namespace crosstalk::driver
