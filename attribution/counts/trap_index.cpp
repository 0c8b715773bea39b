// SPDX-License-Identifier: Apache-2.0
#include "attribution/counts/trap_index.h"

#include <algorithm>

namespace crosstalk::attribution {
namespace {

std::vector<Standing> by_time(const TrapStates& states) {
  std::vector<Standing> standings;
  standings.reserve(states.size());
  for (std::uint32_t row = 0; row < states.size(); ++row) {
    standings.emplace_back(states, row);
  }
  const auto earlier = [](const Standing& a, const Standing& b) { return a.time_ns() < b.time_ns(); };
  if (!std::is_sorted(standings.begin(), standings.end(), earlier)) {
    std::stable_sort(standings.begin(), standings.end(), earlier);
  }
  return standings;
}

}  // namespace

void TrapIndex::add(std::uint32_t watch, std::span<const profile::TrapRow> traps) {
  if (of_watch_.size() <= watch) {
    of_watch_.resize(watch + std::size_t{1});
  }
  of_watch_[watch] = {static_cast<std::uint32_t>(traps_.size()), static_cast<std::uint32_t>(traps.size())};
  for (const profile::TrapRow& trap : traps) {
    const std::uint32_t place = place_of(trap);
    traps_.push_back({place, by_place_[place].states->add(trap)});
  }
}

std::uint32_t TrapIndex::place_of(const profile::TrapRow& trap) {
  for (const std::uint32_t place : latest_) {
    if (place < by_place_.size() && by_place_[place].thread == trap.thread.value && by_place_[place].ip == trap.ip) {
      return place;
    }
  }
  const auto [found, fresh] =
      place_ids_.try_emplace({trap.thread.value, trap.ip}, static_cast<std::uint32_t>(by_place_.size()));
  if (fresh) {
    by_place_.push_back({trap.thread.value, trap.ip, &states_.emplace_back()});
  }
  latest_[next_++ % latest_.size()] = found->second;
  return found->second;
}

void TrapIndex::shrink() { traps_.shrink_to_fit(); }

std::span<const TrapIndex::Trap> TrapIndex::of(std::uint32_t watch) const {
  return watch < of_watch_.size() ? std::span(traps_).subspan(of_watch_[watch].first, of_watch_[watch].second)
                                  : std::span<const Trap>();
}

std::vector<Standing> TrapIndex::standings(std::uint32_t thread, std::uint64_t ip) const {
  const auto found = place_ids_.find({thread, ip});
  return found != place_ids_.end() ? by_time(*by_place_[found->second].states) : std::vector<Standing>();
}

std::vector<std::vector<Standing>> TrapIndex::elsewhere(std::uint32_t thread, std::uint64_t ip) const {
  std::vector<std::vector<Standing>> result;
  for (auto at = place_ids_.lower_bound({thread, 0}); at != place_ids_.end() && at->first.first == thread; ++at) {
    if (at->first.second != ip) {
      result.push_back(by_time(*by_place_[at->second].states));
    }
  }
  return result;
}

}  // namespace crosstalk::attribution
