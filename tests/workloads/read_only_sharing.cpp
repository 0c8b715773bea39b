// SPDX-License-Identifier: Apache-2.0
// All threads read one table, which main has written before they start: sharing, but (past each line's first
// read) no communication.
#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr std::size_t table_words = 1U << 15U;
alignas(4096) std::uint64_t table[table_words];

std::uint64_t look_up(std::uint64_t state, const Deadline& deadline) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < table_words; i += workload::line_bytes / sizeof table[0]) {
    sum += table[i];  // each line for the first time, so that their number is known
  }
  for (std::uint32_t n = 0; (n & 4095U) != 0 || !deadline.passed(); ++n) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    sum += table[state >> 49U];
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("read_only_sharing", "threads read one table");
  flags.number("--threads", 2, 1, 64, "threads").number("--seconds", 3, 0.01, 3600, "run time");
  flags.parse(argc, argv);
  const int threads = flags.integer("--threads");
  for (std::size_t i = 0; i < table_words; ++i) {
    table[i] = i;
  }

  const Deadline deadline(flags.real("--seconds"));
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(threads) * 8);
  workload::run_crew(threads, [&](int index) {
    sums[static_cast<std::size_t>(index - 1) * 8] = look_up(static_cast<std::uint64_t>(index), deadline);
  });
  Truth truth("read_only_sharing", threads + 1);
  truth.add_data("table", table);
  for (int reader = 1; reader <= threads; ++reader) {
    truth.add_true(0, reader, sizeof table / workload::line_bytes);  // each line's first read
  }
  truth.print(deadline.elapsed());
}
