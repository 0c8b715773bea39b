// SPDX-License-Identifier: Apache-2.0
// Threads that come and go at a steady rate beside two that compute, each on its own data: a recorder must cope with
// this for hours.
#include <time.h>

#include <cstdio>
#include <thread>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;

/// Sleeps for `share` of each 10 ms, so that two threads leave a small machine some room.
void compute(double seconds, double share) {
  constexpr long round_ns = 10'000'000;
  const Deadline deadline(seconds);
  volatile std::uint64_t sum = 0;
  while (!deadline.passed()) {
    const Deadline round(round_ns * 1e-9 * share);
    for (std::uint64_t n = 0; (n & 1023U) != 0 || !round.passed(); ++n) {
      sum = sum + n;
    }
    const timespec rest{0, static_cast<long>(round_ns * (1 - share))};
    nanosleep(&rest, nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("thread_churn", "threads that come and go beside two that compute");
  flags.number("--seconds", 10, 0.1, 1e6, "length of the run").number("--rate", 100, 1, 10000, "threads a second");
  flags.number("--load", 0.5, 0.01, 1, "share of a processor that each of the two takes");
  flags.parse(argc, argv);
  const double seconds = flags.real("--seconds");
  const double rate = flags.real("--rate");
  std::thread first(compute, seconds, flags.real("--load"));
  std::thread second(compute, seconds, flags.real("--load"));
  const Deadline clock(seconds);
  std::uint64_t begun = 0;
  while (!clock.passed()) {
    for (const auto due = static_cast<std::uint64_t>(clock.elapsed() * rate); begun < due && !clock.passed(); ++begun) {
      std::thread([] { compute(0.0005, 1); }).join();
    }
    const timespec pause{0, 5'000'000};
    nanosleep(&pause, nullptr);
  }
  first.join();
  second.join();
  std::printf("{\"workload\":\"thread_churn\",\"seconds\":%.3f,\"threads\":%llu}\n", clock.elapsed(),
              static_cast<unsigned long long>(begun));
}
