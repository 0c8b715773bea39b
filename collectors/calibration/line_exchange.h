// SPDX-License-Identifier: Apache-2.0
// Two threads that want one line.
#pragma once

#include <cstdint>
#include <optional>

#include "collectors/calibration/team.h"

namespace crosstalk::collectors::calibration {

/// Each of two members answers the other's store with one of its own, `rounds` times. Seconds from a store to the
/// moment that the other has seen it; nullopt when they did not end within 20 ms, since one of them did not run.
[[nodiscard]] std::optional<double> transfer_seconds(Team& pair, std::uint64_t rounds);

/// Both add 1 to a word, `rounds` times, with `lock`. Seconds of one addition; nullopt when they were not at work at
/// the same time for nearly all of it. `sum` becomes the word's value.
[[nodiscard]] std::optional<double> contended_add_seconds(Team& pair, std::uint64_t rounds, std::uint64_t& sum);

}  // namespace crosstalk::collectors::calibration
