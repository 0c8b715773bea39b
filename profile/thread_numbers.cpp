// SPDX-License-Identifier: Apache-2.0
#include "profile/thread_numbers.h"

#include <algorithm>
#include <map>

namespace crosstalk::profile {

std::vector<std::uint32_t> numbers_by_creation(const std::vector<ThreadRow>& threads) {
  constexpr std::int64_t half_round = 1 << 21;  // of as many ids as a kernel has
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_process;
  for (std::uint32_t i = 0; i < threads.size(); ++i) {
    by_process[threads[i].process.value].push_back(i);
  }
  std::vector<std::uint32_t> numbers(threads.size());
  for (const auto& [process, places] : by_process) {
    std::vector<std::uint32_t> made = places;
    const auto [least, most] = std::minmax_element(
        made.begin(), made.end(), [&](std::uint32_t a, std::uint32_t b) { return threads[a].tid < threads[b].tid; });
    const bool came_round = std::int64_t{threads[*most].tid} - threads[*least].tid > half_round;
    std::stable_sort(made.begin(), made.end(), [&](std::uint32_t a, std::uint32_t b) {
      return came_round ? threads[a].begin_ns < threads[b].begin_ns : threads[a].tid < threads[b].tid;
    });
    for (std::size_t i = 0; i < made.size(); ++i) {
      numbers[made[i]] = places[i];
    }
  }
  return numbers;
}

}  // namespace crosstalk::profile
