// SPDX-License-Identifier: Apache-2.0
#pragma once
// Factors between units.

#include <cstddef>

namespace crosstalk {

inline constexpr double ns_per_s = 1e9;
inline constexpr std::size_t page_bytes = 4096;  // of x86-64

}  // namespace crosstalk
