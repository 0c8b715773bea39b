// SPDX-License-Identifier: Apache-2.0
// Each thread adds to a counter of its own; the counters are `--stride` bytes apart. Below 64 they share lines but no
// bytes: false sharing alone. The number of communications depends on the machine, and counting them would change it,
// so the matrix has proportions: every pair alike.
#include <atomic>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr int max_threads = 64;
constexpr int max_stride = 256;

alignas(4096) unsigned char counters[max_threads * max_stride];

constexpr int counting_line = __LINE__ + 5;
template <class Integer>
std::uint64_t count(Integer* counter, const Deadline& deadline) {
  std::uint64_t n = 0;
  for (; (n & 4095U) != 0 || !deadline.passed(); ++n) {
    __atomic_store_n(counter, static_cast<Integer>(__atomic_load_n(counter, __ATOMIC_RELAXED) + 1), __ATOMIC_RELAXED);
  }
  return n;
}

int line_of(int thread, int stride) { return thread * stride / static_cast<int>(workload::line_bytes); }

/// Returns the number of counters on a line with several, if all such lines have the same number; else 0.
int crowd(int threads, int stride) {
  int alike = 1;
  for (int thread = 0; thread < threads;) {
    int end = thread + 1;
    while (end < threads && line_of(end, stride) == line_of(thread, stride)) {
      ++end;
    }
    const int here = end - thread;
    if (here > 1 && alike > 1 && here != alike) {
      return 0;
    }
    alike = here > 1 ? here : alike;
    thread = end;
  }
  return alike;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("false_sharing", "threads add to counters of their own in one line");
  flags.number("--threads", 2, 2, max_threads, "threads").number("--seconds", 3, 0.01, 3600, "run time");
  flags.number("--stride", 8, 4, max_stride, "bytes from one counter to the next, a multiple of --bytes");
  flags.choice("--bytes", {"8", "4"}, "size of a counter");
  flags.parse(argc, argv);
  const int threads = flags.integer("--threads");
  const int stride = flags.integer("--stride");
  const bool wide = flags.word("--bytes") == "8";
  if (stride % (wide ? 8 : 4) != 0) {
    flags.refuse("--stride " + std::to_string(stride) + " is no multiple of --bytes " + flags.word("--bytes"));
  }
  if (crowd(threads, stride) == 0) {
    flags.refuse("--threads " + std::to_string(threads) + " at --stride " + std::to_string(stride) +
                 " shares some lines among more threads than others, so that no proportions would be known");
  }

  const Deadline deadline(flags.real("--seconds"));
  std::atomic<std::uint64_t> counted{0};
  workload::run_crew(threads, [&](int index) {
    unsigned char* counter = counters + static_cast<std::ptrdiff_t>(index - 1) * stride;
    if (wide) {
      counted += count(reinterpret_cast<std::uint64_t*>(counter), deadline);
    } else {
      counted += count(reinterpret_cast<std::uint32_t*>(counter), deadline);
    }
  });

  Truth truth("false_sharing", threads + 1);
  truth.exact = false;
  truth.invalidations_unknown = "how the threads' accesses interleave is not forced";
  truth.add_data("counters", counters);
  truth.file = __FILE_NAME__;
  truth.producer_line = truth.consumer_line = counting_line;
  for (int one = 1; one <= threads; ++one) {
    for (int other = 1; other <= threads; ++other) {
      if (one != other && line_of(one - 1, stride) == line_of(other - 1, stride)) {
        truth.add_false(one, other, 1);
      }
    }
  }
  truth.print(deadline.elapsed(), "\"counted\":" + std::to_string(counted));
}
