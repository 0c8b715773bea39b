// SPDX-License-Identifier: Apache-2.0
// Two threads add to one counter by `lock xadd`. If the old value is not a thread's own last result, the other one
// stored in between, so each thread counts its communications exactly, and the other one's stores. With `--counter
// own`, each has a counter in a line of its own, which communicates nothing.
#include <x86intrin.h>

#include <array>
#include <cmath>

#include "workload.h"

namespace {

using workload::CostClock;
using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr int threads = 2;
constexpr double period_s = 0.01;  // of --duty

struct alignas(2 * workload::line_bytes) Counter {
  std::uint64_t value = 0;
};
Counter counters[threads];

struct Pace {
  double interval_us = 0, duty = 1;
};

struct alignas(workload::line_bytes) Tally {
  std::uint64_t additions = 0, transfers = 0, foreign_stores = 0;
  CostClock clock;
};

/// Time stamps in a microsecond.
double ticks_of_us() {
  const Deadline while_measured(0.02);
  const std::uint64_t begin = __rdtsc();
  while (!while_measured.passed()) {
  }
  return static_cast<double>(__rdtsc() - begin) / (while_measured.elapsed() * 1e6);
}

/// Microseconds that the clock of costs finds in an empty stretch, which each of its times includes.
double us_of_clock(double us_ticks) {
  constexpr int times = 4096;
  CostClock clock;
  for (int n = 0; n < times; ++n) {
    clock.begin();
    clock.end(0, workload::Sharing::same_word);
  }
  return clock.ticks(0, workload::Sharing::same_word) / times / us_ticks;
}

void work(std::uint64_t ticks) {
  const std::uint64_t begin = __rdtsc();
  while (__rdtsc() - begin < ticks) {
  }
}

constexpr int adding_line = __LINE__ + 9;
Tally add(Counter& counter, int other, const Pace& pace, double us_ticks, const Deadline& deadline) {
  Tally tally;
  const auto ticks = static_cast<std::uint64_t>(pace.interval_us * us_ticks);
  std::uint64_t last = 0;  // its own last result
  for (std::uint64_t n = 0; (n & 63U) != 0 || !deadline.passed(); ++n) {
    work(ticks);
    if (pace.duty >= 1 || std::fmod(deadline.elapsed(), period_s) < pace.duty * period_s) {
      tally.clock.begin();
      const std::uint64_t old = __atomic_fetch_add(&counter.value, 1, __ATOMIC_RELAXED);
      if (old != last) {
        tally.clock.end(other, workload::Sharing::same_word);
        ++tally.transfers;
        tally.foreign_stores += old - last;
      }
      last = old + 1;
      ++tally.additions;
    }
  }
  return tally;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("transfers", "two threads add to a counter and count who was there before");
  flags.number("--seconds", 3, 0.01, 3600, "run time");
  flags.number("--interval-us", 1, 0, 10'000, "work between two additions, in us");
  flags.number("--duty", 100, 1, 100, "per cent of each 10 ms in which the threads add");
  flags.choice("--counter", {"shared", "own"}, "whose it is");
  flags.parse(argc, argv);
  const bool shared = flags.word("--counter") == "shared";
  const Pace pace{flags.real("--interval-us"), flags.real("--duty") / 100};
  const double us_ticks = ticks_of_us();
  const double clock_us = us_of_clock(us_ticks);

  const Deadline deadline(flags.real("--seconds"));
  std::array<Tally, threads> tallies;
  workload::run_crew(threads, [&](int index) {
    tallies.at(static_cast<std::size_t>(index - 1)) =
        add(counters[shared ? 0 : index - 1], threads + 1 - index, pace, us_ticks, deadline);
  });

  Truth truth("transfers", threads + 1);
  truth.add_data("counters", counters);
  truth.file = __FILE_NAME__;
  truth.producer_line = truth.consumer_line = adding_line;
  std::uint64_t additions = 0;
  std::uint64_t foreign_stores = 0;
  for (int me = 1; me <= threads; ++me) {
    const Tally& tally = tallies.at(static_cast<std::size_t>(me - 1));
    truth.add_true(threads + 1 - me, me, tally.transfers);
    truth.add_costs(me, tally.clock);
    additions += tally.additions;
    foreign_stores += tally.foreign_stores;
  }
  truth.print(deadline.elapsed(), "\"clock_us\":" + std::to_string(clock_us) +
                                      ",\"additions\":" + std::to_string(additions) +
                                      ",\"foreign_stores\":" + std::to_string(foreign_stores) +
                                      ",\"sum\":" + std::to_string(counters[0].value + counters[1].value));
}
