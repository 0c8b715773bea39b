// SPDX-License-Identifier: Apache-2.0
// The functions that include/crosstalk/region.h looks for.
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/regions/marked_regions.h"

namespace crosstalk::in_target {

CROSSTALK_INTERPOSE(void, wrap_region_begin, "crosstalk_region_begin", (const char* name));
void wrap_region_begin(const char* name) {
  // The stack pointer of the caller, once it has this function behind it: no lower one is of a function that it calls.
  begin_region(name, static_cast<const char*>(__builtin_frame_address(0)) + 2 * sizeof(void*));
}

CROSSTALK_INTERPOSE(void, wrap_region_end, "crosstalk_region_end", ());
void wrap_region_end() { end_region(); }

}  // namespace crosstalk::in_target
