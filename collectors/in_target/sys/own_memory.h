// SPDX-License-Identifier: Apache-2.0
// The memory that this library has in the target besides the target's own: a list of ranges, so that nothing in them is
// watched, dumped with a core, or locked by the target's mlockall(). All functions are signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace crosstalk::in_target {

/// True if so many bytes may still be mapped. If the target runs under a limit of its address space or data (`ulimit
/// -v`, `ulimit -d`), we use only a small part of it, and nothing when it is nearly used up: the target must not run
/// out of memory because it is observed. `passing`: more bytes, which are unmapped again at once.
bool has_room_for(std::size_t bytes, std::size_t passing = 0);

/// Enters [begin, begin + bytes), whole pages, and keeps it out of core dumps. False: the list is full.
bool enter_own_memory(void* begin, std::size_t bytes);
/// Takes the range that begins there out of the list, before it is unmapped. Only while nothing is observed.
void leave_own_memory(const void* begin);
/// Maps zeroed memory: private, unlocked whatever the target has asked of future mappings, entered in the list. Null
/// when there is no room. Never unmapped.
void* map_own_memory(std::size_t bytes);

/// True if `address` is in a range of the list.
bool is_own_memory(std::uint64_t address);
/// Returns the bytes of all ranges together.
std::size_t own_memory_bytes();
/// Takes back what mlockall() has done to our ranges.
void unlock_own_memory();

}  // namespace crosstalk::in_target
