// SPDX-License-Identifier: Apache-2.0
// The classic: an OpenMP loop whose threads add to neighbouring elements of one array. False sharing; main is
// thread 0 of the team.
#include <omp.h>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr int max_threads = 64;
constexpr int sums_a_line = static_cast<int>(workload::line_bytes / sizeof(std::uint64_t));
alignas(workload::line_bytes) std::uint64_t partial_sums[max_threads];

constexpr int sum_line = __LINE__ + 5;
void add_up(int me, const Deadline& deadline) {
  workload::note_thread(me);
  std::uint64_t& sum = partial_sums[me];
  for (std::uint64_t n = 0; (n & 4095U) != 0 || !deadline.passed(); ++n) {
    __atomic_store_n(&sum, __atomic_load_n(&sum, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("openmp_reduction", "an OpenMP team adds to neighbouring elements");
  flags.number("--threads", 2, 2, max_threads, "team size").number("--seconds", 3, 0.01, 3600, "run time");
  flags.parse(argc, argv);
  const int threads = flags.integer("--threads");
  if (threads > sums_a_line && threads % sums_a_line > 1) {
    flags.refuse("--threads " + std::to_string(threads) + " shares some lines among " + std::to_string(sums_a_line) +
                 " threads and one among fewer, so that no proportions would be known; give a multiple of " +
                 std::to_string(sums_a_line));
  }

  const Deadline deadline(flags.real("--seconds"));
#pragma omp parallel num_threads(threads)
  add_up(omp_get_thread_num(), deadline);

  Truth truth("openmp_reduction", threads);
  truth.exact = false;
  truth.invalidations_unknown = "how the threads' accesses interleave is not forced";
  truth.add_data("partial_sums", partial_sums);
  truth.file = __FILE_NAME__;
  truth.producer_line = truth.consumer_line = sum_line;
  for (int one = 0; one < threads; ++one) {
    for (int other = 0; other < threads; ++other) {
      if (one != other && one / sums_a_line == other / sums_a_line) {
        truth.add_false(one, other, 1);
      }
    }
  }
  truth.print(deadline.elapsed());
}
