// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "collectors/calibration/bench.h"
#include "collectors/calibration/line_exchange.h"

namespace crosstalk::collectors::calibration {
namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;

constexpr std::size_t all_up_to = 120;      // pairs of 16 processors
constexpr std::size_t most_of_a_kind = 24;  // when there are more

bool share(const models::Machine& machine, std::uint32_t level, Pair pair) {
  return std::any_of(machine.caches.begin(), machine.caches.end(), [&](const models::Cache& cache) {
    return cache.level == level && std::binary_search(cache.cpus.begin(), cache.cpus.end(), pair.first) &&
           std::binary_search(cache.cpus.begin(), cache.cpus.end(), pair.second);
  });
}

/// 0: of one core; 1, 2: with a common second or third level; 3: of one package; 4: of two.
unsigned distance(const models::Machine& machine, Pair pair) {
  const auto processor = [&](std::uint32_t cpu) {
    return *std::find_if(machine.processors.begin(), machine.processors.end(),
                         [cpu](const models::Processor& p) { return p.cpu == cpu; });
  };
  const models::Processor a = processor(pair.first);
  const models::Processor b = processor(pair.second);
  if (a.core == b.core) {
    return 0;
  }
  if (share(machine, 2, pair)) {
    return 1;
  }
  if (share(machine, 3, pair)) {
    return 2;
  }
  return a.package == b.package ? 3 : 4;
}

models::ProcessorPair measure(Bench& bench, Pair cpus) {
  constexpr std::uint64_t exchanges = 500, additions = 5000;
  Team pair({cpus.first, cpus.second});
  const auto effort = [&] {
    Effort next = bench.next_figure();
    next.most_tries = std::min(next.most_tries, 2 * next.least_tries);
    return next;
  };
  models::ProcessorPair figures;
  figures.a = cpus.first;
  figures.b = cpus.second;
  figures.transfer_s = time_figure(collect(effort(), [&] { return transfer_seconds(pair, exchanges); }),
                                   "two threads answer each other's stores 500 times, best of tries");
  std::uint64_t sum = 0, made = 0;
  figures.contended_add_s =
      median_figure(collect(effort(), [&] { return contended_add_seconds(pair, additions, sum, made); }),
                    "two threads make locked additions to one word until one has made 5000, median of tries");
  return figures;
}

}  // namespace

std::vector<Pair> choose_pairs(const models::Machine& machine, const std::vector<std::uint32_t>& cpus) {
  std::array<std::vector<Pair>, 5> by_distance;
  std::size_t count = 0;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    for (std::size_t j = i + 1; j < cpus.size(); ++j, ++count) {
      const Pair pair{cpus[i], cpus[j]};
      by_distance[distance(machine, pair)].push_back(pair);
    }
  }
  std::vector<Pair> chosen;
  for (const std::vector<Pair>& pairs : by_distance) {
    const std::size_t wanted = count <= all_up_to ? pairs.size() : std::min(pairs.size(), most_of_a_kind);
    for (std::size_t i = 0; i < wanted; ++i) {
      chosen.push_back(pairs[i * pairs.size() / wanted]);
    }
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<models::ProcessorPair> measure_pairs(Bench& bench) {
  std::vector<models::ProcessorPair> figures;
  const std::vector<Pair> pairs = choose_pairs(bench.machine, bench.cpus);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i % 8 == 0) {
      bench.progress("lines between processors, pair " + std::to_string(i + 1) + " of " + std::to_string(pairs.size()));
    }
    figures.push_back(measure(bench, pairs[i]));
  }
  return figures;
}

}  // namespace crosstalk::collectors::calibration
