// SPDX-License-Identifier: Apache-2.0
// Memory that must not be watched, because our own handlers touch it: a watchpoint there fires in the handler,
// is delivered when the handler returns, and fires again in the handler of that.
#pragma once

#include <cstdint>

namespace crosstalk::in_target {

/// Finds once the addresses of this library and of the kernel's time pages below the vdso; later mappings are in the
/// list of own_memory.h. Normal context, before anything of ours is mapped.
void find_off_limits();
/// True if a range contains a part of the vdso or of the time pages below it.
bool holds_kernel_clocks(std::uint64_t begin, std::uint64_t bytes);
/// Signal-safe.
bool off_limits(std::uint64_t address);

}  // namespace crosstalk::in_target
