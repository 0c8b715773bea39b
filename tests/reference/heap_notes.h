// SPDX-License-Identifier: Apache-2.0
// Reports the program's allocations to the plugin: by system calls that no kernel knows, which the emulator shows to
// the plugin before it refuses them.
#pragma once

#define HEAP_NOTE_ALLOCATED 0x63740001 /* begin, bytes, return address of the allocation */
#define HEAP_NOTE_FREED 0x63740002     /* begin */

#ifdef __cplusplus
#include <cstdint>
#include <string_view>

namespace crosstalk::reference {
inline constexpr std::int64_t heap_note_allocated = HEAP_NOTE_ALLOCATED;
inline constexpr std::int64_t heap_note_freed = HEAP_NOTE_FREED;
inline constexpr std::string_view heap_notes_file = "/libcrosstalk_reference_heap.so";
}  // namespace crosstalk::reference
#endif
