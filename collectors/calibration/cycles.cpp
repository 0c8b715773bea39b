// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/cycles.h"

#include <algorithm>
#include <limits>

#include "collectors/calibration/core_kernels.h"

namespace crosstalk::collectors::calibration {

models::Figure per_cycle_figure(Bench& bench, const std::string& method, double instructions,
                                const std::function<void(std::uint64_t rounds)>& run, std::uint64_t rounds) {
  constexpr std::uint64_t part = 4;  // of a try that the chain takes
  const Effort effort = bench.next_figure();
  const ChainKernel& chain = chain_of(models::Chain::add);
  std::uint64_t links = 0;
  bench.one.run([&](unsigned) {
    Effort brief = effort;
    brief.try_ns /= part;
    links = rounds_for(brief, [&](std::uint64_t n) { chain.run(n); });
    rounds = rounds == 0 ? rounds_for(effort, run) : rounds;
  });
  double cycle_s = std::numeric_limits<double>::infinity();
  Tries tries = collect(effort, [&] {
    double seconds = 0, chain_s = 0;
    const TeamTime time = bench.one.run([&](unsigned) {
      chain_s = seconds_of([&] { chain.run(links); });
      seconds = seconds_of([&] { run(rounds); });
    });
    cycle_s = std::min(cycle_s, chain_s / static_cast<double>(links * unrolled));
    return Trial{seconds / (instructions * static_cast<double>(rounds)), time.disturbed};
  });
  for (std::vector<double>* const seconds : {&tries.quiet, &tries.disturbed}) {
    for (double& each : *seconds) {
      each /= cycle_s;
    }
  }
  return rate_figure(tries, method);
}

}  // namespace crosstalk::collectors::calibration
