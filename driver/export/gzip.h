// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace crosstalk::driver {

/// `data` as gzip packs it, without a name and a time: the same data give the same bytes. Fails if memory runs out.
[[nodiscard]] Result<std::string> gzip(const std::string& data);

}  // namespace crosstalk::driver
