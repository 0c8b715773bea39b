// SPDX-License-Identifier: Apache-2.0
// Threads reduce their vectors pairwise: in each of the log2(n) levels of a round, the remaining threads add their
// partners' values to their own. So thread n communicates, once a line and round, to the one thread that is its parent
// in the tree: n with its lowest bit cleared. Thread 0 holds the result.
#include "rendezvous.h"

namespace {

using workload::CostClock;
using workload::Deadline;
using workload::Flags;
using workload::Rendezvous;
using workload::Truth;

constexpr int max_threads = 64;
constexpr int max_lines = 1024;

struct Vector {
  struct alignas(workload::line_bytes) Line {
    std::uint64_t sum = 0;
  };
  Line lines[max_lines];
};
Vector partial[max_threads];

constexpr int begin_line = __LINE__ + 3;
void begin(Vector& own, int lines, std::uint64_t value) {
  for (int n = 0; n < lines; ++n) {
    __atomic_store_n(&own.lines[n].sum, value, __ATOMIC_RELAXED);
  }
}

constexpr int take_line = __LINE__ + 3;
void take_over(Vector& own, const Vector& from, int lines) {
  for (int n = 0; n < lines; ++n) {
    const std::uint64_t sum = __atomic_load_n(&from.lines[n].sum, __ATOMIC_RELAXED);
    __atomic_store_n(&own.lines[n].sum, __atomic_load_n(&own.lines[n].sum, __ATOMIC_RELAXED) + sum, __ATOMIC_RELAXED);
  }
}

/// One round: all levels of the tree. All threads come to all meetings.
void reduce(int me, int threads, int lines, Rendezvous& rendezvous, CostClock& clock) {
  for (int step = 1; step < threads; step *= 2) {
    rendezvous.meet();
    if (me % (2 * step) == 0 && me + step < threads) {
      clock.begin();
      take_over(partial[me], partial[me + step], lines);
      clock.end(me + step + 1, workload::Sharing::same_word);
    }
  }
}

/// One thread's results: rounds; 0 if a result was wrong.
struct Part {
  std::uint64_t rounds = 0;
  CostClock clock;
};

Part take_part(int me, int threads, int lines, Rendezvous& rendezvous, const Deadline& deadline) {
  const auto all = static_cast<std::uint64_t>(threads);
  CostClock clock;
  bool all_right = true;
  std::uint64_t round = 0;
  do {
    ++round;
    begin(partial[me], lines, round + static_cast<std::uint64_t>(me));
    reduce(me, threads, lines, rendezvous, clock);
    all_right &= me != 0 || partial[0].lines[lines - 1].sum == all * round + all * (all - 1) / 2;
  } while (rendezvous.meet_again(deadline));
  return {all_right ? round : 0, clock};
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("reduction_tree", "threads reduce their vectors pairwise");
  flags.number("--threads", 4, 2, max_threads, "threads").number("--seconds", 3, 0.01, 3600, "run time");
  flags.number("--lines", 16, 1, max_lines, "cache lines of a vector");
  flags.parse(argc, argv);
  const int threads = flags.integer("--threads");
  const int lines = flags.integer("--lines");

  const Deadline deadline(flags.real("--seconds"));
  Rendezvous rendezvous(static_cast<std::uint32_t>(threads));
  std::vector<Part> parts(static_cast<std::size_t>(threads));
  workload::run_crew(threads, [&](int index) {
    parts[static_cast<std::size_t>(index - 1)] = take_part(index - 1, threads, lines, rendezvous, deadline);
  });
  const std::uint64_t rounds = parts[0].rounds;
  if (rounds == 0) {
    flags.refuse("a sum was wrong: this machine, or this program, is broken");
  }

  Truth truth("reduction_tree", threads + 1);
  truth.add_data("partial", partial);
  truth.sync = {"rendezvous"};
  truth.file = __FILE_NAME__;
  // At the leaves (half of all), the last store before a partner reads is the thread's own value.
  truth.producer_line = begin_line;
  truth.consumer_line = take_line;
  for (int me = 0; me < threads; ++me) {
    truth.add_costs(me + 1, parts[static_cast<std::size_t>(me)].clock);
  }
  for (int me = 1; me < threads; ++me) {
    const int parent = me & (me - 1);
    const auto read = static_cast<std::uint64_t>(lines);
    truth.add_true(me + 1, parent + 1, rounds * read);
    truth.add_invalidations(me + 1, parent + 1, (rounds - 1) * read);  // the first round finds nothing read yet
  }
  truth.print(deadline.elapsed());
}
