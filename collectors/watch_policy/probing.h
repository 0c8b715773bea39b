// SPDX-License-Identifier: Apache-2.0
// Decides which samples probe their lines, and for how long. Pure functions.
//
// The clocks of threads that run side by side often go off at the same tick. A probing thread needs the others to go on
// with their program: a random half of the samples does not probe.
#pragma once

#include <cstdint>

namespace crosstalk::watch_policy {

struct ProbePlan {
  bool wanted = false;
  std::uint32_t gap_ns = 0;  // between the two looks
};

inline constexpr std::uint32_t shortest_gap_log = 8;  // 256 ns
inline constexpr std::uint32_t gap_octaves = 6;       // up to 16.4 us

/// Draws a plan before anything of the line is known. Gaps are spread evenly over octaves: frequent stores often show
/// in short gaps, which disturb least, and rare ones in long gaps. `random`: 64 random bits.
[[nodiscard]] constexpr ProbePlan plan_probe(std::uint64_t random) {
  const auto octave = static_cast<std::uint32_t>((random >> 32U) % gap_octaves);
  const std::uint32_t base = 1U << (shortest_gap_log + octave);
  return {(random >> 63U) != 0, base + (static_cast<std::uint32_t>(random) & (base - 1))};
}

}  // namespace crosstalk::watch_policy
