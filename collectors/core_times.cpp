// SPDX-License-Identifier: Apache-2.0
#include "collectors/core_times.h"

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace crosstalk::collectors {
namespace {

constexpr int tries = 9;
constexpr std::uint64_t rounds = 400;
constexpr std::uint64_t unrolled = 16;  // instructions of the chain in a round

/// Picoseconds of one link of the chain that `round` executes `unrolled` of.
template <class Round>
std::uint32_t link_ps(Round round) {
  std::uint64_t least = UINT64_MAX;
  for (int i = 0; i < tries; ++i) {
    const std::uint64_t begin = monotonic_ns();
    for (std::uint64_t r = 0; r < rounds; ++r) {
      round();
    }
    least = std::min(least, monotonic_ns() - begin);
  }
  return static_cast<std::uint32_t>(least * 1000 / (rounds * unrolled));
}

#define CROSSTALK_SIXTEEN(text) text text text text text text text text text text text text text text text text

std::uint32_t lesser(std::uint32_t one, std::uint32_t other) {
  return one == 0 || other == 0 ? std::max(one, other) : std::min(one, other);
}

}  // namespace

profile::CoreTimes quicker(const profile::CoreTimes& one, const profile::CoreTimes& other) {
  return {lesser(one.cycle_ps, other.cycle_ps), lesser(one.locked_ps, other.locked_ps),
          lesser(one.forward_ps, other.forward_ps)};
}

std::uint32_t forward_ps(std::uint32_t chain_ps, std::uint32_t cycle_ps) {
  if (chain_ps < cycle_ps / 2) {
    return 0;
  }
  return chain_ps > cycle_ps ? chain_ps - cycle_ps : 1;
}

profile::CoreTimes measure_core_times() {
  alignas(64) std::uint64_t word = 0;
  std::uint64_t value = 0;
  profile::CoreTimes times;
  times.cycle_ps = link_ps([&] { asm volatile(CROSSTALK_SIXTEEN("imul %0, %0\n") : "+r"(value)); }) / 3;
  times.locked_ps = link_ps([&] { asm volatile(CROSSTALK_SIXTEEN("lock incq %0\n") : "+m"(word)); });
  // Load, add, store: a forwarded value, and one cycle. Uses an address in a register, as most loops do: some cores are
  // quicker with words of the stack only.
  const std::uint32_t chain = link_ps([&] {
    asm volatile(CROSSTALK_SIXTEEN("incq (%0)\n") : : "r"(&word) : "memory");
  });
  times.forward_ps = forward_ps(chain, times.cycle_ps);
  return times;
}

}  // namespace crosstalk::collectors
