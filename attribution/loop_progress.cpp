// SPDX-License-Identifier: Apache-2.0
#include "attribution/loop_progress.h"

#include <algorithm>
#include <utility>

namespace crosstalk::attribution {
namespace {

using symbolizer::LoopMoment;

constexpr auto stack_pointer = static_cast<std::size_t>(Register::rsp);
constexpr std::uint32_t most_waited = 64;  // samples elsewhere, after which a loop is no longer waited for
constexpr std::size_t most_waiting = 16;   // functions on one stack

/// Steps of one counter from one moment to the other; nullopt: no whole number of them, or backwards.
std::optional<std::int64_t> steps_of(const LoopMoment& from, const LoopMoment& to, std::size_t reg, bool narrow) {
  const std::uint64_t raw = to.value.at(reg) - from.value.at(reg);
  const auto distance = narrow ? static_cast<std::int32_t>(raw) : static_cast<std::int64_t>(raw);
  const std::int64_t step = to.step.at(reg);
  if (step == 0 || from.step.at(reg) != step || step == INT64_MIN || distance == INT64_MIN || distance % step != 0) {
    return std::nullopt;
  }
  return distance / step < 0 ? std::nullopt : std::optional(distance / step);
}

bool fixed_registers_differ(const LoopMoment& from, const LoopMoment& to) {
  for (std::size_t reg = 0; reg < symbolizer::general_registers; ++reg) {
    if (from.has(from.fixed, reg) && to.has(to.fixed, reg) && from.value.at(reg) != to.value.at(reg)) {
      return true;
    }
  }
  return false;
}

}  // namespace

Progress progress_between(const LoopMoment& from, const LoopMoment& to) {
  if (!from.has(from.fixed, stack_pointer) || !to.has(to.fixed, stack_pointer)) {
    return {};
  }
  if (fixed_registers_differ(from, to)) {
    return {Visit::another, 0};
  }
  const auto both = static_cast<std::uint16_t>(from.counters & to.counters);
  const auto narrow = static_cast<std::uint16_t>(from.narrow | to.narrow);
  std::optional<std::int64_t> steps;
  for (const bool half : {false, true}) {  // what has all its bits first
    for (std::size_t reg = 0; reg < symbolizer::general_registers; ++reg) {
      if (!from.has(both, reg) || from.has(narrow, reg) != half) {
        continue;
      }
      if (half && steps) {
        const std::uint64_t expected = from.value.at(reg) + static_cast<std::uint64_t>(*steps * to.step.at(reg));
        if (static_cast<std::uint32_t>(expected) != static_cast<std::uint32_t>(to.value.at(reg))) {
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

LoopProgress::Position LoopProgress::position_of(const profile::SampleRow& sample) {
  Position now;
  const Moment moment = view_.moment(sample.thread, sample.time_ns);
  const auto place = view_.spaces().find(moment, sample.ip);
  now.stack = (*sample.registers)[Register::rsp];
  now.anatomy = place ? view_.code().loop_anatomy(*place) : nullptr;
  if (now.anatomy == nullptr) {
    return now;
  }
  for (std::uint32_t loop = now.anatomy->innermost(place->address); loop < now.anatomy->loops();
       loop = now.anatomy->parent(loop)) {
    Level level;
    level.loop = loop;
    level.trail = &trails_[{place->file, now.anatomy->header(loop)}];
    ++level.trail->samples;
    const symbolizer::LoopCounters& counters = now.anatomy->counters(loop);
    level.trail->counts = counters.has_counters();
    level.moment = counters.at(place->address, *sample.registers);
    now.levels.push_back(level);
  }
  std::reverse(now.levels.begin(), now.levels.end());
  return now;
}

void LoopProgress::step(const Position& last, Position& now) {
  bool anchored = false;
  for (std::size_t i = 0; i < now.levels.size(); ++i) {
    Level& level = now.levels[i];
    if (i >= last.levels.size() || last.levels[i].loop != level.loop) {
      return;
    }
    const Level& before = last.levels[i];
    const Progress progress =
        before.moment && level.moment ? progress_between(*before.moment, *level.moment) : Progress{};
    LoopTrail& trail = *level.trail;
    if (progress.visit == Visit::unknown) {
      ++trail.unreadable;
      anchored = false;
      continue;
    }
    const bool same = progress.visit == Visit::same;
    level.visit = same ? before.visit : level.visit;
    trail.steps.push_back({now.since_s, now.elsewhere_s, progress.iterations, same, anchored, level.visit});
    if (!same || progress.iterations > 0) {
      for (++i; i < std::min(now.levels.size(), last.levels.size()) && last.levels[i].loop == now.levels[i].loop; ++i) {
        ++now.levels[i].trail->moved_on;
      }
      return;
    }
    anchored = true;
  }
}

void LoopProgress::read_trips(Position& now) {
  for (std::size_t i = 1; i < now.levels.size(); ++i) {
    const auto& trips = now.anatomy->trips(now.levels[i].loop);
    const auto& around = now.levels[i - 1].moment;
    const auto count = trips && around ? trips->at(*around) : std::nullopt;
    if (!count) {
      continue;
    }
    LoopTrail& trail = *now.levels[i].trail;
    trail.trips_least = trail.trips_read == 0 ? *count : std::min(trail.trips_least, *count);
    trail.trips_most = std::max(trail.trips_most, *count);
    ++trail.trips_read;
  }
}

/// Who of the positions on the stack is left at `now`: a function whose frame lies below has returned.
void LoopProgress::unwind(std::vector<Position>& waiting, const Position& now) {
  while (!waiting.empty() && waiting.back().anatomy != now.anatomy && now.stack >= waiting.back().stack) {
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
  Position now = position_of(sample);
  unwind(waiting, now);
  for (Level& level : now.levels) {
    level.visit = ++visits_;
  }
  read_trips(now);
  if (now.anatomy != nullptr && !waiting.empty() && waiting.back().anatomy == now.anatomy) {
    Position& last = waiting.back();
    now.since_s = last.since_s;
    now.elsewhere_s = last.elsewhere_s - static_cast<double>(sample.cpu_ns) * s_per_ns;
    step(last, now);
    waiting.pop_back();
  }
  now.since_s = now.elsewhere_s = 0;
  if (!now.levels.empty() && waiting.size() < most_waiting) {
    waiting.push_back(std::move(now));
  }
}

}  // namespace crosstalk::attribution
