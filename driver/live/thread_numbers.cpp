// SPDX-License-Identifier: Apache-2.0
#include "driver/live/thread_numbers.h"

namespace crosstalk::driver::live {

std::vector<std::uint32_t> ThreadNumbers::of(std::span<const profile::ThreadRow> threads,
                                             std::span<const profile::ProcessRow> processes) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(threads.size());
  for (const profile::ThreadRow& thread : threads) {
    const std::int32_t pid = thread.process.value < processes.size() ? processes[thread.process.value].pid : 0;
    const auto [known, fresh] = numbers_.try_emplace({pid, thread.tid}, next_);
    next_ += fresh ? 1 : 0;
    numbers.push_back(known->second);
    if (thread.end_ns != 0) {  // its id may be another thread's from now on
      numbers_.erase(known);
    }
  }
  return numbers;
}

}  // namespace crosstalk::driver::live
