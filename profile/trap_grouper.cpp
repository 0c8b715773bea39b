// SPDX-License-Identifier: Apache-2.0
#include "profile/trap_grouper.h"

#include <algorithm>

namespace crosstalk::profile {

TrapGrouper::TrapGrouper(std::span<const WatchRow> watches, const Visit& visit)
    : watches_(watches), visit_(visit), group_of_(watches.size(), none) {}

void TrapGrouper::add(const TrapRow& trap) {
  const std::uint32_t watch = late_ ? none : watch_of(trap);
  if (watch == none || trap.word >= watches_[watch].words.size()) {
    return;
  }
  std::uint32_t& group = group_of_[watch];
  if (group == done) {
    late_ = true;
    return;
  }
  group = group == none ? new_group(watch) : group;
  groups_[group].traps.push_back(keep(trap));
  groups_[group].last = number_;
  arrivals_.push_back({number_++, group});
  while (arrivals_.front().number + window_rows < number_) {
    visit_oldest();
  }
}

bool TrapGrouper::finish() {
  while (!late_ && !arrivals_.empty()) {
    visit_oldest();
  }
  return !late_;
}

/// The watch's index; `none` if there is no such watch.
std::uint32_t TrapGrouper::watch_of(const TrapRow& trap) {
  if (last_watch_ < watches_.size() && watches_[last_watch_].id == trap.watch) {
    return last_watch_;
  }
  const auto found = std::lower_bound(watches_.begin(), watches_.end(), trap.watch,
                                      [](const WatchRow& watch, WatchId id) { return watch.id < id; });
  if (found == watches_.end() || found->id != trap.watch) {
    return none;
  }
  last_watch_ = static_cast<std::uint32_t>(found - watches_.begin());
  return last_watch_;
}

std::uint32_t TrapGrouper::new_group(std::uint32_t watch) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(groups_.size()));
    groups_.emplace_back();
  }
  const std::uint32_t group = free_.back();
  free_.pop_back();
  groups_[group].watch = watch;
  return group;
}

/// Keeps the trap and returns its place in rows_.
std::uint32_t TrapGrouper::keep(const TrapRow& trap) {
  if (unused_.empty()) {
    rows_.push_back(trap);
    return static_cast<std::uint32_t>(rows_.size() - 1);
  }
  const std::uint32_t place = unused_.back();
  unused_.pop_back();
  rows_[place] = trap;
  return place;
}

/// Drops the oldest arrival, and visits its watch if that was the watch's last trap.
void TrapGrouper::visit_oldest() {
  const Arrival oldest = arrivals_.front();
  arrivals_.pop_front();
  Group& group = groups_[oldest.group];
  if (group.last != oldest.number) {
    return;
  }
  const auto by_sequence = [this](std::uint32_t a, std::uint32_t b) { return rows_[a].sequence < rows_[b].sequence; };
  if (!std::is_sorted(group.traps.begin(), group.traps.end(), by_sequence)) {
    std::stable_sort(group.traps.begin(), group.traps.end(), by_sequence);
  }
  visited_.clear();
  for (const std::uint32_t place : group.traps) {
    visited_.push_back(rows_[place]);
    unused_.push_back(place);
  }
  visit_(group.watch, visited_);
  group.traps.clear();
  group_of_[group.watch] = done;
  free_.push_back(oldest.group);
}

}  // namespace crosstalk::profile
