// SPDX-License-Identifier: Apache-2.0
// The least resource limits that leave a program room for our library. The recorder and the library must use the same
// ones.
#pragma once

#include <cstdint>

namespace crosstalk {

/// Stack, bytes: our signals take about 4 KiB, and the loader needs more stack with the library than without.
inline constexpr std::uint64_t least_stack_limit = std::uint64_t{64} << 10U;
/// Address space, bytes: glibc reserves 128 MiB at once for the first block of a thread (HEAP_MAX_SIZE, twice) besides
/// the thread's stack of 8 MiB. Under a smaller limit, our mappings may be what that reservation then lacks.
inline constexpr std::uint64_t least_space_limit = std::uint64_t{192} << 20U;
/// Private writable memory, bytes: under a smaller limit the program may need all of it.
inline constexpr std::uint64_t least_data_limit = std::uint64_t{64} << 20U;
/// Real-time CPU time, µs: under a limit of 0 the kernel kills a process that has a CPU-time timer.
inline constexpr std::uint64_t least_real_time_limit = 1;

}  // namespace crosstalk
