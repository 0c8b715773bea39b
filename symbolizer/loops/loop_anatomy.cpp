// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/loop_anatomy.h"

#include <algorithm>
#include <utility>

namespace crosstalk::symbolizer {

LoopAnatomy::LoopAnatomy(const ControlFlow& flow, ReadBytes read)
    : flow_(flow), read_(std::move(read)), nest_(natural_loops(flow)), parts_(nest_.loops.size()) {}

std::uint32_t LoopAnatomy::innermost(std::uint64_t address) const {
  const auto next = std::upper_bound(flow_.blocks.begin(), flow_.blocks.end(), address,
                                     [](std::uint64_t a, const Block& block) { return a < block.begin; });
  if (next == flow_.blocks.begin() || address >= std::prev(next)->end) {
    return Loop::no_parent;
  }
  return nest_.innermost[static_cast<std::size_t>(std::prev(next) - flow_.blocks.begin())];
}

const LoopCounters& LoopAnatomy::counters(std::uint32_t loop) {
  auto& counters = parts_[loop].counters;
  if (!counters) {
    counters = std::make_unique<LoopCounters>(flow_, nest_.loops[loop], read_);
  }
  return *counters;
}

const IterationWork& LoopAnatomy::work(std::uint32_t loop) {
  auto& work = parts_[loop].work;
  if (!work) {
    work = iteration_work(flow_, nest_, loop, read_);
  }
  return *work;
}

const std::optional<TripCount>& LoopAnatomy::trips(std::uint32_t loop) {
  auto& trips = parts_[loop].trips;
  if (!trips) {
    trips.emplace();
    const std::uint32_t around = parent(loop);
    if (around < nest_.loops.size()) {
      *trips = trip_count(flow_, nest_.loops[loop], counters(loop), nest_.loops[around], counters(around), read_);
    }
  }
  return *trips;
}

}  // namespace crosstalk::symbolizer
