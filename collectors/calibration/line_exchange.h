// SPDX-License-Identifier: Apache-2.0
// Two threads that want one line.
#pragma once

#include <cstdint>
#include <optional>

#include "collectors/calibration/team.h"

namespace crosstalk::collectors::calibration {

/// Each of two members answers the other's store with one of its own, `rounds` times. Seconds from a store to the
/// moment that the other has seen it; nullopt when they did not end within 20 ms, since one of them did not run.
[[nodiscard]] std::optional<Trial> transfer_seconds(Team& pair, std::uint64_t rounds);

/// Both add 1 to a word with `lock`, until one has done so `rounds` times, because the holder of the line may keep it
/// for long. Returns the seconds of one addition; nullopt when they were not at work at the same time for nearly all of
/// it. `sum` becomes the word's value, `made` the number of additions.
[[nodiscard]] std::optional<Trial> contended_add_seconds(Team& pair, std::uint64_t rounds, std::uint64_t& sum,
                                                         std::uint64_t& made);

}  // namespace crosstalk::collectors::calibration
