// SPDX-License-Identifier: Apache-2.0
// A reference as JSON, `crosstalk.reference/1` (docs/reference.md).
#pragma once

#include <cstddef>
#include <string>

#include "tests/reference/resolver.h"

namespace crosstalk::reference {

/// `most_rows` bounds each list; the total is always written.
[[nodiscard]] std::string json_text(const Reference& reference, std::size_t most_rows);

}  // namespace crosstalk::reference
