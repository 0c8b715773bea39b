// SPDX-License-Identifier: Apache-2.0
#include "collectors/core_times.h"

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace crosstalk::collectors {
namespace {

constexpr int tries = 9;
constexpr int rounds = 400;
constexpr int unrolled = 16;  // instructions of the chain in a round

/// Picoseconds of one link of the chain that `round` executes `unrolled` of.
template <class Round>
std::uint32_t link_ps(Round round) {
  std::uint64_t least = UINT64_MAX;
  for (int i = 0; i < tries; ++i) {
    const std::uint64_t begin = monotonic_ns();
    for (int r = 0; r < rounds; ++r) {
      round();
    }
    least = std::min(least, monotonic_ns() - begin);
  }
  return static_cast<std::uint32_t>(least * 1000 / (rounds * unrolled));
}

#define CROSSTALK_SIXTEEN(text) text text text text text text text text text text text text text text text text

}  // namespace

profile::CoreTimes measure_core_times() {
  alignas(64) std::uint64_t word = 0;
  std::uint64_t value = 0;
  profile::CoreTimes times;
  times.cycle_ps = link_ps([&] { asm volatile(CROSSTALK_SIXTEEN("imul %0, %0\n") : "+r"(value)); }) / 3;
  times.locked_ps = link_ps([&] { asm volatile(CROSSTALK_SIXTEEN("lock incq %0\n") : "+m"(word)); });
  // Load, add, store: what is forwarded, and one cycle.
  const std::uint32_t chain = link_ps([&] { asm volatile(CROSSTALK_SIXTEEN("incq %0\n") : "+m"(word)); });
  times.forward_ps = chain > times.cycle_ps ? chain - times.cycle_ps : 0;
  return times;
}

}  // namespace crosstalk::collectors
