// SPDX-License-Identifier: Apache-2.0
// Random numbers for decisions by chance, not for secrets. No state of its own, so it works in signal handlers.
#pragma once

#include <cstdint>

namespace crosstalk {

/// The next word of the generator xorshift64* (Vigna 2016), whose `state` must not be 0.
inline std::uint64_t next_random(std::uint64_t& state) {
  state ^= state >> 12U;
  state ^= state << 25U;
  state ^= state >> 27U;
  return state * 0x2545f4914f6cdd1dULL;
}

/// A state for the `number`th of several generators that begin with one seed.
inline std::uint64_t random_state(std::uint64_t seed, std::uint64_t number) {
  return (seed + number) * 0x9e3779b97f4a7c15ULL | 1U;
}

}  // namespace crosstalk
