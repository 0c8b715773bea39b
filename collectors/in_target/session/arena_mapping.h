// SPDX-License-Identifier: Apache-2.0
// Maps the recorder's arena, if this process has room for it. Normal context.
#pragma once

namespace crosstalk::in_target {

/// Maps the arena of that name and takes over its settings. False: there is none, its session is over, or it has no
/// room.
bool map_arena(const char* name);

}  // namespace crosstalk::in_target
