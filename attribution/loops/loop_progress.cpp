// SPDX-License-Identifier: Apache-2.0
#include "attribution/loops/loop_progress.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace crosstalk::attribution {
namespace {

using symbolizer::LoopMoment;

constexpr auto stack_pointer = static_cast<std::size_t>(Register::rsp);
constexpr std::uint32_t most_waited = 64;  // samples elsewhere, after which a loop is no longer waited for
constexpr std::size_t most_waiting = 16;   // functions on one stack

/// Steps of one counter between two moments; nullopt: no whole number of them, or backwards.
std::optional<std::int64_t> steps_of(const LoopMoment& from, const LoopMoment& to, std::size_t reg, bool narrow) {
  const std::uint64_t raw = to.value.at(reg) - from.value.at(reg);
  const auto distance = narrow ? static_cast<std::int32_t>(raw) : static_cast<std::int64_t>(raw);
  const std::int64_t step = to.step.at(reg);
  if (step == 0 || from.step.at(reg) != step || step == INT64_MIN || distance == INT64_MIN || distance % step != 0) {
    return std::nullopt;
  }
  return distance / step < 0 ? std::nullopt : std::optional(distance / step);
}

/// Removes the lowest register from `mask` and returns it.
std::size_t take_register(std::uint16_t& mask) {
  const auto reg = static_cast<std::size_t>(std::countr_zero(mask));
  mask = static_cast<std::uint16_t>(mask & (mask - 1U));
  return reg;
}

bool fixed_registers_differ(const LoopMoment& from, const LoopMoment& to) {
  for (auto both = static_cast<std::uint16_t>(from.fixed & to.fixed); both != 0;) {
    const std::size_t reg = take_register(both);
    if (from.value.at(reg) != to.value.at(reg)) {
      return true;
    }
  }
  return false;
}

/// True if a half register has moved by as many steps, modulo 2^32.
bool half_agrees(const LoopMoment& from, const LoopMoment& to, std::size_t reg, std::int64_t steps) {
  const std::uint64_t expected = from.value.at(reg) + static_cast<std::uint64_t>(steps * to.step.at(reg));
  return static_cast<std::uint32_t>(expected) == static_cast<std::uint32_t>(to.value.at(reg));
}

}  // namespace

Progress progress_between(const LoopMoment& from, const LoopMoment& to) {
  if (!from.has(from.fixed, stack_pointer) || !to.has(to.fixed, stack_pointer)) {
    return {};
  }
  if (fixed_registers_differ(from, to)) {
    return {Visit::another, 0};
  }
  const unsigned both = from.counters & to.counters;
  const unsigned narrow = from.narrow | to.narrow;
  std::optional<std::int64_t> steps;
  for (const bool half : {false, true}) {  // whole registers first
    for (auto rest = static_cast<std::uint16_t>(half ? both & narrow : both & ~narrow); rest != 0;) {
      const std::size_t reg = take_register(rest);
      if (half && steps) {
        if (!half_agrees(from, to, reg, *steps)) {
          return {Visit::another, 0};
        }
        continue;
      }
      const auto here = steps_of(from, to, reg, half);
      if (!here || (steps && *steps != *here)) {
        return {Visit::another, 0};
      }
      steps = here;
    }
  }
  return steps ? Progress{Visit::same, static_cast<double>(*steps)} : Progress{};
}

LoopProgress::Spot LoopProgress::new_spot(ModulePlace place) {
  Spot spot;
  spot.anatomy = view_.code().loop_anatomy(place);
  if (spot.anatomy == nullptr) {
    return spot;
  }
  symbolizer::LoopAnatomy& anatomy = *spot.anatomy;
  for (std::uint32_t loop = anatomy.innermost(place.address); loop < anatomy.loops(); loop = anatomy.parent(loop)) {
    const symbolizer::LoopCounters& counters = anatomy.counters(loop);
    const auto& trips = anatomy.trips(loop);
    spot.loops.push_back({loop, &trails_[{place.file, anatomy.header(loop)}], counters.has_counters(),
                          counters.reader_at(place.address), trips ? &*trips : nullptr});
  }
  std::reverse(spot.loops.begin(), spot.loops.end());
  return spot;
}

const LoopProgress::Spot& LoopProgress::spot_of(const profile::SampleRow& sample) {
  return spots_.at(view_, sample, [&](ModulePlace place) { return new_spot(place); });
}

void LoopProgress::read_position(const profile::SampleRow& sample, Position& now) {
  now.spot = &spot_of(sample);
  now.stack = (*sample.registers)[Register::rsp];
  now.since_s = now.elsewhere_s = 0;
  now.waited = 0;
  now.levels.resize(now.spot->loops.size());
  for (std::size_t i = 0; i < now.levels.size(); ++i) {
    const Around& around = now.spot->loops[i];
    ++around.trail->samples;
    around.trail->counts = around.counts;
    Level& level = now.levels[i];
    level.moment.reset();
    if (around.reader) {
      level.moment = around.reader->read(*sample.registers);
    }
    level.visit = ++visits_;
  }
}

/// The number of loops that contain both positions, from the outermost on.
std::size_t LoopProgress::common_loops(const Position& last, const Position& now) {
  std::size_t common = 0;
  while (common < last.levels.size() && common < now.levels.size() &&
         last.spot->loops[common].loop == now.spot->loops[common].loop) {
    ++common;
  }
  return common;
}

/// The change of the position within an iteration of `loop`, as a part of an iteration, -1 to 1. Inner loops that
/// contain both positions give it, innermost first: each is a part of an iteration of the next.
std::optional<double> LoopProgress::parts_between(const Position& last, const Position& now, std::size_t loop) {
  std::optional<double> parts;
  for (std::size_t i = common_loops(last, now); i-- > loop + 1;) {
    const Level& from = last.levels[i];
    const Level& to = now.levels[i];
    const bool known = from.done && to.done && from.trips == to.trips && *to.trips > 0;
    parts = known ? std::optional((*to.done - *from.done + parts.value_or(0)) / *to.trips) : std::nullopt;
  }
  return parts;
}

void LoopProgress::step(const Position& last, Position& now) {
  const std::size_t common = common_loops(last, now);
  bool anchored = false;
  for (std::size_t i = 0; i < common; ++i) {
    Level& level = now.levels[i];
    const Level& before = last.levels[i];
    Progress progress = before.moment && level.moment ? progress_between(*before.moment, *level.moment) : Progress{};
    LoopTrail& trail = *now.spot->loops[i].trail;
    if (progress.visit == Visit::unknown) {
      ++trail.unreadable;
      anchored = false;
      continue;
    }
    std::optional<double> with_parts;
    if (const auto parts = progress.visit == Visit::same ? parts_between(last, now, i) : std::nullopt) {
      with_parts = progress.iterations + *parts;
      if (*with_parts < 0) {  // no visit goes backwards
        progress = {Visit::another, 0};
        with_parts.reset();
      }
    }
    const bool same = progress.visit == Visit::same;
    level.visit = same ? before.visit : level.visit;
    trail.steps.push_back(
        {now.since_s, now.elsewhere_s, progress.iterations, same, anchored, level.visit, with_parts, now.thread});
    if (!same || progress.iterations > 0) {
      for (++i; i < common; ++i) {
        ++now.spot->loops[i].trail->moved_on;
      }
      return;
    }
    anchored = true;
  }
}

void LoopProgress::read_trips(Position& now) {
  for (std::size_t i = 1; i < now.levels.size(); ++i) {
    Level& level = now.levels[i];
    level.trips = level.done = std::nullopt;
    const symbolizer::TripCount* trips = now.spot->loops[i].trips;
    const auto& around = now.levels[i - 1].moment;
    level.trips = trips != nullptr && around ? trips->at(*around) : std::nullopt;
    if (!level.trips) {
      continue;
    }
    level.done = level.moment ? trips->done(*level.moment, *around) : std::nullopt;
    LoopTrail& trail = *now.spot->loops[i].trail;
    trail.trips_least = trail.trips_read == 0 ? *level.trips : std::min(trail.trips_least, *level.trips);
    trail.trips_most = std::max(trail.trips_most, *level.trips);
    ++trail.trips_read;
  }
}

/// Removes positions that are left at `now`: a function whose frame lies below has returned.
void LoopProgress::unwind(std::vector<Position>& waiting, const Position& now) {
  while (!waiting.empty() && waiting.back().spot->anatomy != now.spot->anatomy && now.stack >= waiting.back().stack) {
    waiting.pop_back();
  }
  std::erase_if(waiting, [](const Position& position) { return position.waited > most_waited; });
}

void LoopProgress::add(const profile::SampleRow& sample) {
  if (!view_.knows(sample.thread)) {
    return;
  }
  constexpr double s_per_ns = 1e-9;
  std::vector<Position>& waiting = waiting_[sample.thread.value];
  for (Position& position : waiting) {
    position.since_s += static_cast<double>(sample.cpu_ns) * s_per_ns;
    position.elsewhere_s += static_cast<double>(sample.cpu_ns) * s_per_ns;
    ++position.waited;
  }
  if (!sample.registers) {
    return;
  }
  Position& now = now_;
  read_position(sample, now);
  now.thread = sample.thread.value;
  unwind(waiting, now);
  read_trips(now);
  const bool again =
      now.spot->anatomy != nullptr && !waiting.empty() && waiting.back().spot->anatomy == now.spot->anatomy;
  if (again) {
    const Position& last = waiting.back();
    now.since_s = last.since_s;
    now.elsewhere_s = last.elsewhere_s - static_cast<double>(sample.cpu_ns) * s_per_ns;
    step(last, now);
  }
  now.since_s = now.elsewhere_s = 0;
  if (again && !now.levels.empty()) {
    std::swap(waiting.back(), now);
  } else if (again) {
    waiting.pop_back();
  } else if (!now.levels.empty() && waiting.size() < most_waiting) {
    waiting.push_back(std::move(now));
  }
}

}  // namespace crosstalk::attribution
