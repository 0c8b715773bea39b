// SPDX-License-Identifier: Apache-2.0
#include "attribution/stacks/lenders.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string>
#include <tuple>

namespace crosstalk::attribution {

Lenders::Lenders(const ProgramView& view) : view_(view) {
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::string>, std::uint32_t> first;
  for (std::uint32_t thread = 0; thread < view.threads().size(); ++thread) {
    const profile::ThreadRow& row = view.threads()[thread];
    kinds_.push_back(row.start_routine != 0
                         ? first.try_emplace({row.process.value, row.start_routine, row.name}, thread).first->second
                         : thread);
  }
}

std::vector<Lenders::Key> Lenders::keys_of(const LeafPlace& leaf) const {
  std::vector<Key> keys = {{Level::address, leaf.thread, leaf.file, leaf.address}};
  const std::uint64_t function = leaf.file != 0 ? view_.code().locate({leaf.file - 1, leaf.address}).function_begin : 0;
  if (function != 0) {
    const ProcessId process = view_.threads()[leaf.thread].process;
    keys.push_back({Level::function, leaf.thread, leaf.file, function});
    keys.push_back({Level::kind, kinds_[leaf.thread], leaf.file, function});
    keys.push_back({Level::process, process.value, leaf.file, function});
  }
  return keys;
}

void Lenders::add(const LeafPlace& leaf, const CallerStack& callers, double weight) {
  for (const Key& key : keys_of(leaf)) {
    loans_[key].try_emplace(callers.number, Loan{callers, 0}).first->second.weight += weight > 0 ? weight : 1;
  }
}

std::vector<Lenders::Loan> Lenders::of(const LeafPlace& leaf) const {
  std::vector<Loan> loans;
  for (const Key& key : keys_of(leaf)) {
    const auto found = loans_.find(key);
    if (found == loans_.end() || (key.level == Level::process && found->second.size() > 1)) {
      continue;
    }
    std::transform(found->second.begin(), found->second.end(), std::back_inserter(loans),
                   [](const auto& loan) { return loan.second; });
    break;
  }
  return loans;
}

std::uint64_t whole(double weight) {
  constexpr double most = 4611686018427387904.0;
  return static_cast<std::uint64_t>(std::llround(std::clamp(weight, 0.0, most)));
}

std::vector<std::uint64_t> split(std::uint64_t total, const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::uint64_t> parts(weights.size());
  std::vector<double> lost(weights.size());
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double part = static_cast<double>(total) * (weights[i] / sum);
    parts[i] = std::min(static_cast<std::uint64_t>(part), total - given);
    lost[i] = part - std::floor(part);
    given += parts[i];
  }
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return lost[a] > lost[b]; });
  for (std::size_t i = 0; i < order.size() && given < total; ++i, ++given) {
    ++parts[order[i]];
  }
  if (!parts.empty()) {
    parts.front() += total - given;  // beyond a double's precision
  }
  return parts;
}

}  // namespace crosstalk::attribution
