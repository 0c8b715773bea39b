// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/pointer_chain.h"

#include <numeric>
#include <utility>
#include <vector>

#include "base/random.h"

namespace crosstalk::collectors::calibration {

void* make_pointer_chain(std::byte* memory, std::uint64_t bytes, std::uint32_t line_bytes, std::uint64_t seed) {
  // Sattolo's algorithm: a random permutation that is one circle.
  std::vector<std::uint32_t> next(bytes / line_bytes);
  std::iota(next.begin(), next.end(), 0U);
  std::uint64_t state = random_state(seed, 1);
  for (std::size_t i = next.size() - 1; i > 0; --i) {
    std::swap(next[i], next[(next_random(state) >> 16U) % i]);
  }
  const auto line = [&](std::uint64_t number) { return memory + number * line_bytes; };
  for (std::size_t i = 0; i < next.size(); ++i) {
    *reinterpret_cast<void**>(line(i)) = line(next[i]);
  }
  return line(0);
}

}  // namespace crosstalk::collectors::calibration
