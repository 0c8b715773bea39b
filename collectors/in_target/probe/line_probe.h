// SPDX-License-Identifier: Apache-2.0
// The line probe: a thread waits in its sample's handler, and reads its line twice. Other threads stored the bytes that
// differ. It needs no debug register, and sees no store that leaves a value as it was.
//
// The kernel reads the line for us (read_memory()): a line that another thread has unmapped since is an error, and no
// fault. Only a present page is read: the holder of a userfaultfd might serve an absent one, or it might come from a
// disk. Nothing is ever written.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

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

using LineWords = std::array<std::uint64_t, 8>;

struct TwoLooks {
  LineWords first{};          // the line at the first look
  std::uint64_t changed = 0;  // bit n: byte n of the line differs
  std::uint32_t gap_ns = 0;   // from the first look to the second
};

/// Looks at the line at `line` twice, about `gap_ns` apart, from within a HandlerStay. Returns nothing, and counts it,
/// if the line cannot be read, another thread probes at the same time, or others were in handlers, too and could not
/// store. Signal-safe, never waits for longer than some 20 us more than the gap.
[[nodiscard]] std::optional<TwoLooks> look_twice(std::uint64_t line, std::uint32_t gap_ns,
                                                 profile::ProbeCounts& skipped);

}  // namespace crosstalk::in_target
