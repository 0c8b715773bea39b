// SPDX-License-Identifier: Apache-2.0
// The line probe: a thread waits in its sample's handler, and reads its line twice. Other threads stored the bytes that
// differ. It needs no debug register, and sees no store that leaves a value as it was.
//
// The kernel reads the line for us (read_memory()): a line that another thread has unmapped since is an error, and no
// fault. Only a present page is read: the holder of a userfaultfd might serve an absent one, or it might come from a
// disk. Nothing is ever written.
#pragma once

#include <cstdint>
#include <optional>

#include "collectors/watch_policy/two_looks.h"
#include "profile/arena.h"

namespace crosstalk::in_target {

/// While it lives, the calling thread is in a sample's handler and stores nothing of its program's. Signal-safe.
class HandlerStay {
 public:
  HandlerStay();
  ~HandlerStay();
  HandlerStay(const HandlerStay&) = delete;
  HandlerStay& operator=(const HandlerStay&) = delete;
};
/// After fork: the other threads are not here.
void forget_handler_stays();

/// Looks at the line at `line` twice, about `gap_ns` apart, from within a HandlerStay. Returns nothing, and counts it,
/// if the line cannot be read, another thread probes at the same time, or others were in handlers, too and could not
/// store. Signal-safe, never waits for longer than some 20 us more than the gap.
[[nodiscard]] std::optional<watch_policy::TwoLooks> look_twice(std::uint64_t line, std::uint32_t gap_ns,
                                                               profile::ProbeCounts& skipped);

}  // namespace crosstalk::in_target
