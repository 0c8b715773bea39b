// SPDX-License-Identifier: Apache-2.0
// The least limits of resources that leave a program room for a library of ours beside it. Recorder and library have to
// judge alike.
#pragma once

#include <cstdint>

namespace crosstalk {

/// Of the stack: our signals take some 4 KiB, and the loader needs more of it with the library than without.
inline constexpr std::uint64_t least_stack_limit = std::uint64_t{64} << 10U;
/// Of address space and data: below it a program may use all.
inline constexpr std::uint64_t least_memory_limit = std::uint64_t{64} << 20U;
/// Of real-time CPU time: where none is allowed, the kernel ends whoever has a timer of CPU time.
inline constexpr std::uint64_t least_real_time_limit = 1;

}  // namespace crosstalk
