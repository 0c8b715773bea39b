// SPDX-License-Identifier: Apache-2.0
// Many threads that live for microseconds, a few at a time; half of them detached.
#include <pthread.h>

#include <cstdio>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;
using workload::Truth;

struct alignas(workload::line_bytes) Tally {
  std::uint32_t finished = 0;
};
Tally tally;

void* live_briefly(void*) {
  volatile std::uint64_t sum = 0;
  for (std::uint64_t n = 0; n < 2000; ++n) {
    sum = sum + n;
  }
  __atomic_fetch_add(&tally.finished, 1U, __ATOMIC_RELEASE);
  return nullptr;
}

bool start(pthread_t& thread, bool detached) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
  pthread_attr_setstacksize(&attributes, 64UL * 1024);
  const int error = pthread_create(&thread, &attributes, live_briefly, nullptr);
  pthread_attr_destroy(&attributes);
  return error == 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("short_threads", "many threads that live for microseconds");
  flags.number("--threads", 10000, 1, 1e6, "threads in all").number("--at-once", 8, 1, 256, "threads at one time");
  flags.parse(argc, argv);
  const auto total = static_cast<std::uint32_t>(flags.integer("--threads"));
  const auto at_once = static_cast<std::uint32_t>(flags.integer("--at-once"));

  const Deadline clock(0);
  for (std::uint32_t started = 0; started < total;) {
    std::vector<pthread_t> joinable;
    for (std::uint32_t n = 0; n < at_once && started < total; ++n, ++started) {
      const bool detached = started % 2 == 1;
      pthread_t thread{};
      if (!start(thread, detached)) {
        flags.refuse("pthread_create failed after " + std::to_string(started) + " threads");
      }
      if (!detached) {
        joinable.push_back(thread);
      }
    }
    for (pthread_t thread : joinable) {
      pthread_join(thread, nullptr);
    }
  }
  for (unsigned spins = 0; __atomic_load_n(&tally.finished, __ATOMIC_ACQUIRE) != total;) {
    workload::relax(spins, true);
  }
  std::printf("{\"workload\":\"short_threads\",\"finished\":%u}\n", tally.finished);
  std::fprintf(stderr, "%.3f s\n", clock.elapsed());
}
