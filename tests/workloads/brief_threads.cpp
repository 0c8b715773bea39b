// SPDX-License-Identifier: Apache-2.0
// Threads that live for a given time each, a few at once, one crew after another: each spends two fifths of its life
// counting on a line that it shares with the others of its crew, and the rest on a line of its own. A profile of many
// threads that live for a millisecond must agree with one of few that live for a second. Both parts are measured,
// because a loop overshoots its time if stores to a shared line take long, and because beginning, ending and reading
// the clock take a part of a brief life.
#include <pthread.h>
#include <time.h>

#include <cstdio>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;

constexpr int most_at_once = 16;
constexpr double shared_share = 0.4;

struct alignas(workload::line_bytes) Counters {
  std::uint32_t of_thread[most_at_once] = {};
};
Counters counters;

std::uint64_t ticks() { return __builtin_ia32_rdtsc(); }

double ticks_per_s() {
  const Deadline clock(0.01);
  const std::uint64_t begin = ticks();
  while (!clock.passed()) {
  }
  return static_cast<double>(ticks() - begin) / clock.elapsed();
}

struct Life {
  std::uint64_t round_ticks = 0;
  int rounds = 0;
};
Life life;

/// CPU time of one thread, by its own clock.
struct Used {
  std::int64_t ns = 0, counting_ns = 0, computing_ns = 0;
};

struct Member {
  std::uint32_t* counter = nullptr;
  Used used;
};

std::int64_t thread_ns() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000'000 + used.tv_nsec;
}

/// Reads the time seldom, so that counting takes most of the time.
[[gnu::noinline]] void count_until(std::uint64_t end, std::uint32_t* counter) {
  do {
    for (int n = 0; n < 200; ++n) {
      __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
    }
  } while (ticks() < end);
}

/// The same on the thread's own stack.
[[gnu::noinline]] void compute_until(std::uint64_t end) {
  alignas(workload::line_bytes) volatile std::uint64_t own = 0;
  do {
    for (int n = 0; n < 200; ++n) {
      own = own + 1;
    }
  } while (ticks() < end);
}

void* live(void* member) {
  Used used;
  std::uint32_t* const counter = static_cast<Member*>(member)->counter;
  std::int64_t begin_ns = thread_ns();
  for (int round = 0; round < life.rounds; ++round) {
    const std::uint64_t begin = ticks();
    count_until(begin + static_cast<std::uint64_t>(shared_share * static_cast<double>(life.round_ticks)), counter);
    const std::int64_t counted_ns = thread_ns();
    compute_until(begin + life.round_ticks);
    const std::int64_t end_ns = thread_ns();
    used.counting_ns += counted_ns - begin_ns, used.computing_ns += end_ns - counted_ns;
    begin_ns = end_ns;
  }
  used.ns = thread_ns();
  static_cast<Member*>(member)->used = used;
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("brief_threads", "crews of threads that live for a given time");
  flags.number("--seconds", 2, 0.1, 1e6, "length of the run").number("--life", 0.001, 1e-4, 1e3, "of a thread, s");
  flags.number("--at-once", 2, 1, most_at_once, "threads at one time");
  flags.parse(argc, argv);
  const int at_once = flags.integer("--at-once");
  constexpr double round_s = 50e-6;
  life.rounds = static_cast<int>(flags.real("--life") / round_s);
  life.round_ticks = static_cast<std::uint64_t>(ticks_per_s() * round_s);

  const Deadline deadline(flags.real("--seconds"));
  std::uint64_t threads = 0;
  double cpu_s = 0;
  double counting_s = 0, computing_s = 0;
  while (!deadline.passed()) {
    std::vector<pthread_t> crew(static_cast<std::size_t>(at_once));
    std::vector<Member> members(crew.size());
    for (std::size_t one = 0; one < crew.size(); ++one, ++threads) {
      members[one].counter = &counters.of_thread[one];
      if (pthread_create(&crew[one], nullptr, live, &members[one]) != 0) {
        flags.refuse("pthread_create failed after " + std::to_string(threads) + " threads");
      }
    }
    for (std::size_t one = 0; one < crew.size(); ++one) {
      pthread_join(crew[one], nullptr);
      cpu_s += static_cast<double>(members[one].used.ns) * 1e-9;
      counting_s += static_cast<double>(members[one].used.counting_ns) * 1e-9;
      computing_s += static_cast<double>(members[one].used.computing_ns) * 1e-9;
    }
  }
  std::printf(
      "{\"workload\":\"brief_threads\",\"threads\":%llu,\"cpu_s\":%.3f,\"counting_s\":%.3f,\"computing_s\":%.3f,"
      "\"seconds\":%.3f}\n",
      static_cast<unsigned long long>(threads), cpu_s, counting_s, computing_s, deadline.elapsed());
}
