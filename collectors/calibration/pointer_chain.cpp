// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/pointer_chain.h"

#include <numeric>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"

namespace crosstalk::collectors::calibration {

void* make_pointer_chain(std::byte* memory, std::uint64_t bytes, std::uint32_t line_bytes, std::uint64_t seed,
                         std::uint64_t deadline_ns) {
  constexpr std::size_t steps_between_clocks = std::size_t{1} << 16;
  const auto late = [&](std::size_t step) { return step % steps_between_clocks == 0 && monotonic_ns() > deadline_ns; };
  // Sattolo's algorithm: a random permutation that is one circle.
  std::vector<std::uint32_t> next(bytes / line_bytes);
  std::iota(next.begin(), next.end(), 0U);
  std::uint64_t state = random_state(seed, 1);
  for (std::size_t i = next.size() - 1; i > 0; --i) {
    if (late(i)) {
      return nullptr;
    }
    std::swap(next[i], next[(next_random(state) >> 16U) % i]);
  }
  const auto line = [&](std::uint64_t number) { return memory + number * line_bytes; };
  for (std::size_t i = 0; i < next.size(); ++i) {
    if (late(i)) {
      return nullptr;
    }
    *reinterpret_cast<void**>(line(i)) = line(next[i]);
  }
  return line(0);
}

}  // namespace crosstalk::collectors::calibration
