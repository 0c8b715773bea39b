// SPDX-License-Identifier: Apache-2.0
#include "attribution/objects/block_groups.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <unordered_map>

namespace crosstalk::attribution {
namespace {

using BlockPair = std::pair<std::uint32_t, std::uint32_t>;
using BlockGroup = std::vector<std::uint32_t>;

constexpr std::size_t most_groups = 24;         // by pairs of threads; the least costly are one group
constexpr std::size_t most_sightings = 20'000;  // in the test of chance
constexpr std::size_t few_sightings = 5;        // of a block: too few to stand out

/// A sighting as two small numbers.
struct Labelled {
  std::uint32_t block = 0, pair = 0;
};

double entropy(const std::vector<double>& counts, double all) {
  double sum = 0;
  for (const double n : counts) {
    sum -= n > 0 ? n / all * std::log(n / all) : 0;
  }
  return sum;
}

/// The information of the block about the pair, in nats: H(pair) + H(block) - H(both).
double mutual_information(const std::vector<Labelled>& seen, std::size_t blocks, std::size_t pairs) {
  std::vector<double> by_block(blocks), by_pair(pairs);
  std::unordered_map<std::uint64_t, double> by_both;
  for (const Labelled& each : seen) {
    by_block[each.block] += 1;
    by_pair[each.pair] += 1;
    by_both[(std::uint64_t{each.block} << 32U) | each.pair] += 1;
  }
  std::vector<double> both;
  both.reserve(by_both.size());
  for (const auto& [key, count] : by_both) {
    both.push_back(count);
  }
  const auto all = static_cast<double>(seen.size());
  return entropy(by_pair, all) + entropy(by_block, all) - entropy(both, all);
}

std::vector<Labelled> labelled(std::span<const BlockSighting> sightings, std::size_t& pairs) {
  std::map<BlockPair, std::uint32_t> ids;
  std::vector<Labelled> seen;
  const std::size_t step = sightings.size() / most_sightings + 1;
  for (std::size_t i = 0; i < sightings.size(); i += step) {
    const auto pair = ids.try_emplace(sightings[i].threads, static_cast<std::uint32_t>(ids.size())).first;
    seen.push_back({sightings[i].block, pair->second});
  }
  pairs = ids.size();
  return seen;
}

/// True if the pair of threads depends on the block.
bool pairs_differ(std::uint32_t blocks, std::span<const BlockSighting> sightings) {
  constexpr int shuffles = 20;
  constexpr double surely = 4;  // standard deviations
  constexpr double most_of_it = 0.5;
  std::size_t pairs = 0;
  std::vector<Labelled> seen = labelled(sightings, pairs);
  if (pairs < 2) {
    return false;
  }
  std::vector<double> by_pair(pairs);
  for (const Labelled& each : seen) {
    by_pair[each.pair] += 1;
  }
  const double all = entropy(by_pair, static_cast<double>(seen.size()));
  const double told = mutual_information(seen, blocks, pairs);
  std::minstd_rand random(1);  // the same report each time
  double sum = 0, squares = 0;
  for (int i = 0; i < shuffles; ++i) {
    for (std::size_t at = seen.size() - 1; at > 0; --at) {
      std::swap(seen[at].pair, seen[random() % (at + 1)].pair);
    }
    const double chance = mutual_information(seen, blocks, pairs);
    sum += chance;
    squares += chance * chance;
  }
  const double mean = sum / shuffles;
  const double deviation = std::sqrt(std::max(0.0, squares / shuffles - mean * mean));
  constexpr double noticeable = 0.1;  // nats; less is rounding
  return all - mean > noticeable && told - mean > surely * deviation && told - mean >= most_of_it * (all - mean);
}

/// Groups blocks by the pair of threads that uses each most, the costliest group first.
std::vector<BlockGroup> by_threads(std::uint32_t blocks, std::span<const BlockSighting> sightings) {
  std::vector<std::map<BlockPair, std::size_t>> seen(blocks);
  std::vector<double> costs(blocks);
  for (const BlockSighting& each : sightings) {
    ++seen[each.block][each.threads];
    costs[each.block] += each.cost;
  }
  std::map<BlockPair, std::pair<double, BlockGroup>> groups;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const auto most = std::max_element(seen[block].begin(), seen[block].end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    auto& [cost, group] = groups[most == seen[block].end() ? BlockPair{} : most->first];
    cost += costs[block];
    group.push_back(block);
  }
  std::vector<std::pair<double, BlockGroup>> order;
  order.reserve(groups.size());
  for (auto& [pair, group] : groups) {
    order.push_back(std::move(group));
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<BlockGroup> result;
  for (auto& [cost, group] : order) {
    if (result.size() < most_groups) {
      result.push_back(std::move(group));
    } else {
      result.back().insert(result.back().end(), group.begin(), group.end());
    }
  }
  return result;
}

/// Separates the few of `group` with most of its cost, each alone, from the rest; `group` unchanged if there are none.
std::vector<BlockGroup> by_cost(const BlockGroup& group, const std::vector<double>& costs,
                                const std::vector<std::size_t>& seen) {
  constexpr std::size_t few = 5;
  constexpr double most_of_it = 0.6;
  constexpr double at_most = 0.4;  // of the blocks
  constexpr double far_above = 4;  // times what one of the others costs
  const double all = std::accumulate(group.begin(), group.end(), 0.0,
                                     [&](double sum, std::uint32_t block) { return sum + costs[block]; });
  BlockGroup order = group;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return costs[a] > costs[b]; });
  double held = 0;
  std::size_t n = 0;
  while (n < order.size() && held < most_of_it * all) {
    if (n >= few || seen[order[n]] < few_sightings) {
      return {group};
    }
    held += costs[order[n++]];
  }
  const auto others = static_cast<double>(order.size() - n);
  if (n == 0 || static_cast<double>(n) > at_most * static_cast<double>(order.size()) ||
      costs[order[n - 1]] * others < far_above * (all - held)) {
    return {group};
  }
  std::vector<BlockGroup> result;
  for (std::size_t i = 0; i < n; ++i) {
    result.push_back({order[i]});
  }
  result.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(n), order.end());
  return result;
}

}  // namespace

std::vector<std::vector<std::uint32_t>> alike_blocks(std::uint32_t blocks, std::span<const BlockSighting> sightings) {
  BlockGroup all(blocks);
  std::iota(all.begin(), all.end(), 0);
  if (blocks < 2 || sightings.empty()) {
    return {all};
  }
  std::vector<double> costs(blocks);
  std::vector<std::size_t> seen(blocks);
  for (const BlockSighting& each : sightings) {
    costs[each.block] += each.cost;
    ++seen[each.block];
  }
  const bool apart = pairs_differ(blocks, sightings);
  const std::vector<BlockGroup> parts = apart ? by_threads(blocks, sightings) : std::vector<BlockGroup>(1, all);
  std::vector<BlockGroup> result;
  for (const BlockGroup& part : parts) {
    std::vector<BlockGroup> finer = by_cost(part, costs, seen);
    std::move(finer.begin(), finer.end(), std::back_inserter(result));
  }
  return result;
}

}  // namespace crosstalk::attribution
