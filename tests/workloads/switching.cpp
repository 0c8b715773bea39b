// SPDX-License-Identifier: Apache-2.0
// Pairs of threads that wake each other through pipes: tens of thousands of context switches a second, which a per-task
// event makes dear. Prints the round trips; does a fixed number of them.
#include <unistd.h>

#include <cstdio>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;

/// One end of a conversation over two pipes; both are closed with it.
struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (pipe(ends) != 0) {
      std::perror("switching: pipe");
      _exit(1);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
};

void talk(const Pipe& in, const Pipe& out, bool begins, std::uint64_t trips) {
  char word = 0;
  for (std::uint64_t n = 0; n < trips; ++n) {
    if (begins && write(out.ends[1], &word, 1) != 1) {
      return;
    }
    if (read(in.ends[0], &word, 1) != 1) {
      return;
    }
    if (!begins && write(out.ends[1], &word, 1) != 1) {
      return;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("switching", "pairs of threads wake each other through pipes");
  flags.number("--pairs", 1, 1, 64, "pairs").number("--iterations", 200000, 1, 1e9, "round trips of each pair");
  flags.parse(argc, argv);
  const int pairs = flags.integer("--pairs");
  const auto trips = static_cast<std::uint64_t>(flags.integer("--iterations"));

  const Deadline clock(0);
  const std::vector<Pipe> pipes(static_cast<std::size_t>(pairs) * 2);
  workload::run_crew(pairs * 2, [&](int index) {
    const std::size_t pair = static_cast<std::size_t>(index - 1) / 2 * 2;
    const bool begins = index % 2 == 1;
    talk(pipes[pair + (begins ? 0 : 1)], pipes[pair + (begins ? 1 : 0)], begins, trips);
  });
  const double seconds = clock.elapsed();
  std::printf("{\"workload\":\"switching\",\"round_trips\":%llu,\"per_second\":%.0f,\"seconds\":%.6f}\n",
              static_cast<unsigned long long>(trips * static_cast<std::uint64_t>(pairs)),
              static_cast<double>(trips) * pairs / seconds, seconds);
}
