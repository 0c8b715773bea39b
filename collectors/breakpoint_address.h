// SPDX-License-Identifier: Apache-2.0
// The addresses of breakpoint events. All code that opens or moves one asks here, so that a test can simulate a machine
// with dead debug registers on one whose registers fire: all events are led to words that nobody touches.
#pragma once

#include <cstdint>

namespace crosstalk::collectors {

/// Read by the recorder and by `crosstalk doctor`, for tests (docs/testing.md). "1": watchpoints are dead; "later":
/// they are once the self-test has been passed.
inline constexpr const char* dead_watchpoints_variable = "CROSSTALK_TEST_DEAD_WATCHPOINTS";

/// `dead`: in page zero, which is never mapped, with the alignment of `address`.
[[nodiscard]] constexpr std::uint64_t breakpoint_address(std::uint64_t address, bool dead) {
  constexpr std::uint64_t in_line = 63;
  return dead ? address & in_line : address;
}

}  // namespace crosstalk::collectors
