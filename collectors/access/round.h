// SPDX-License-Identifier: Apache-2.0
// The way by which a thread in a loop will come to its present instruction again.
#pragma once

#include <array>
#include <cstdint>

#include "base/registers.h"
#include "collectors/access/code.h"
#include "collectors/access/code_reader.h"

namespace crosstalk::in_target {

struct Round {
  static constexpr unsigned most = 4;
  std::array<std::uint64_t, most> last{};  ///< addresses of its last instructions, the latest first
  unsigned length = 0;                     ///< how many of `last` there are
};

/// Interprets ahead until the instruction pointer's instruction comes again, on the memory as it is now. False: not
/// within 64 instructions, or the way depends on something unknown. Signal-safe, as the finder.
[[nodiscard]] bool find_round(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                              CodeWindow& window, const CodeReader& reader, Round& out);

}  // namespace crosstalk::in_target
