// SPDX-License-Identifier: Apache-2.0
// Draws which samples may probe their lines, and the gap between the two reads. Pure functions.
//
// The clocks of parallel threads often tick together. If all of these threads probed, none would store. So half of the
// samples, at random, do not probe.
#pragma once

#include <cstdint>

namespace crosstalk::watch_policy {

struct ProbePlan {
  bool wanted = false;
  std::uint32_t gap_ns = 0;  // between the two looks
};

inline constexpr std::uint32_t shortest_gap_log = 8;  // 256 ns
inline constexpr std::uint32_t gap_octaves = 6;       // up to 16.4 us

/// Draws a plan that does not depend on the line. Gaps are spread evenly over octaves: short gaps show frequent stores
/// and disturb least; long gaps show rare ones. `random`: 64 random bits.
[[nodiscard]] constexpr ProbePlan plan_probe(std::uint64_t random) {
  const auto octave = static_cast<std::uint32_t>((random >> 32U) % gap_octaves);
  const std::uint32_t base = 1U << (shortest_gap_log + octave);
  return {(random >> 63U) != 0, base + (static_cast<std::uint32_t>(random) & (base - 1))};
}

}  // namespace crosstalk::watch_policy
