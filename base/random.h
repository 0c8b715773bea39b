// SPDX-License-Identifier: Apache-2.0
// Random numbers for sampling decisions, not for secrets. Signal-safe: the caller keeps the state.
#pragma once

#include <cstdint>

namespace crosstalk {

/// Returns the next number of the generator xorshift64* (Vigna 2016). `state` must not be 0.
inline std::uint64_t next_random(std::uint64_t& state) {
  state ^= state >> 12U;
  state ^= state << 25U;
  state ^= state >> 27U;
  return state * 0x2545f4914f6cdd1dULL;
}

/// Returns a random number in [0, 1).
inline double uniform(std::uint64_t& state) { return static_cast<double>(next_random(state) >> 11U) * 0x1p-53; }

/// Returns the initial state of the `number`th of several generators that share one seed.
inline std::uint64_t random_state(std::uint64_t seed, std::uint64_t number) {
  return (seed + number) * 0x9e3779b97f4a7c15ULL | 1U;
}

}  // namespace crosstalk
