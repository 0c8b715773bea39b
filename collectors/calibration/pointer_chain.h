// SPDX-License-Identifier: Apache-2.0
// A circle of pointers through all lines of a piece of memory, in random order: no prefetcher guesses the next one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace crosstalk::collectors::calibration {

/// Makes the circle, a pointer at the begin of each line, and returns one of them. `bytes` is two lines at least. Null
/// when it is not done by `deadline_ns`.
void* make_pointer_chain(std::byte* memory, std::uint64_t bytes, std::uint32_t line_bytes, std::uint64_t seed,
                         std::uint64_t deadline_ns = UINT64_MAX);

}  // namespace crosstalk::collectors::calibration
