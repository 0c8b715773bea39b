// SPDX-License-Identifier: Apache-2.0
#include "attribution/loops/called_loops.h"

#include <algorithm>
#include <utility>

#include "attribution/loops/code_time.h"

namespace crosstalk::attribution {
namespace {

constexpr std::size_t most_seen = 4'000;  // of a loop: enough for a rate, and little memory
constexpr std::size_t most_callers = 64;  // of a loop, that are looked at
constexpr std::size_t least_callers = 2;  // in agreement
constexpr std::size_t least_seen = 8;
constexpr auto stack_pointer = static_cast<std::size_t>(Register::rsp);

}  // namespace

CalledLoops::Spot CalledLoops::new_spot(ModulePlace place) const {
  Spot spot;
  spot.anatomy = view_.code().loop_anatomy(place);
  if (spot.anatomy == nullptr) {
    return spot;
  }
  std::uint32_t loop = spot.anatomy->innermost(place.address);
  while (loop < spot.anatomy->loops() && spot.anatomy->parent(loop) < spot.anatomy->loops()) {
    loop = spot.anatomy->parent(loop);
  }
  if (loop >= spot.anatomy->loops() || !spot.anatomy->calls().kept()) {
    return spot;
  }
  const auto visit = spot.anatomy->calls().visit(loop, spot.anatomy->counters(loop));
  spot.inside = spot.anatomy->counters(loop).reader_at(place.address);
  spot.call = spot.anatomy->calls().reader_at(place.address);
  if (visit && spot.inside && spot.call) {
    spot.visit = *visit;
    spot.loop = {place.file, spot.anatomy->header(loop)};
    spot.eligible = true;
  }
  return spot;
}

const CalledLoops::Spot& CalledLoops::spot_of(const profile::SampleRow& sample) {
  return spots_.at(view_, sample, [&](ModulePlace place) { return new_spot(place); });
}

void CalledLoops::add(const profile::SampleRow& sample, StackTable& stacks) {
  if (!view_.knows(sample.thread)) {
    return;
  }
  constexpr double s_per_ns = 1e-9;
  const double cpu_s = static_cast<double>(sample.cpu_ns) * s_per_ns;
  clocks_[sample.thread.value] += cpu_s;
  if (!sample.registers || !sample.is_of_time()) {
    return;
  }
  const Spot& spot = spot_of(sample);
  if (!spot.eligible) {
    return;
  }
  Trail& trail = trails_[spot.loop];
  trail.anatomy = spot.anatomy;
  trail.asked = spot.visit.asked;
  double& own_s = trail.own_s[sample.thread];
  own_s += cpu_s;
  const symbolizer::LoopMoment call = spot.call->read(*sample.registers);
  const symbolizer::LoopMoment inside = spot.inside->read(*sample.registers);
  const symbolizer::LoopMoment& told_by = spot.visit.by == symbolizer::TripsBy::inside ? inside : call;
  const auto trips = spot.visit.trips.at(told_by);
  const auto done = spot.visit.trips.done(inside, told_by);
  if (!trips || !done || !call.has(call.fixed, stack_pointer) || trail.seen.size() >= most_seen) {
    return;
  }
  trail.alike = trail.alike && (trail.seen.empty() || trail.trips == *trips);
  trail.trips = *trips;
  trail.seen.push_back(
      {sample.thread, clocks_[sample.thread.value], own_s, call.value.at(stack_pointer), *done, *sample.registers});
  if (sample.stack.value != 0 && trail.callers.size() < most_callers) {
    trail.callers.push_back({sample.stack, view_.moment(sample.thread, sample.time_ns)});
    stacks.want(trail.callers.back().stack, trail.callers.back().moment);
  }
}

/// The registers that count the calls; none if not all calls seen come from one loop.
std::vector<CalledLoops::Counted> CalledLoops::counters_of(const Trail& trail, const StackTable& stacks) const {
  std::optional<ModulePlace> behind;
  std::size_t agreeing = 0;
  for (const Caller& caller : trail.callers) {
    const auto addresses = stacks.addresses(caller.stack);
    if (addresses.size() < 2) {
      continue;
    }
    const auto place = view_.spaces().find(caller.moment, addresses[1]);
    if (!place || (behind && *behind != *place)) {
      return {};
    }
    behind = place;
    ++agreeing;
  }
  if (agreeing < least_callers) {
    return {};
  }
  const auto loop = innermost_loop(view_.code(), {behind->file, behind->address - 1});
  const std::uint16_t kept = trail.anatomy->calls().kept().value_or(0);
  const auto around = loop ? loop->anatomy->around_call(loop->index, behind->address, kept, trail.asked)
                           : std::optional<symbolizer::RegisterForms>();
  std::vector<Counted> counters;
  for (std::size_t reg = 0; around && reg < symbolizer::general_registers; ++reg) {
    const auto& form = around->at(reg);
    symbolizer::Linear same = symbolizer::Linear::of(reg);
    if (!form || (kept >> reg & 1U) == 0 || reg == stack_pointer) {
      continue;
    }
    same.constant = form->constant;
    same.narrow = form->narrow;
    const auto step = static_cast<std::int64_t>(form->constant);
    if (*form == same && step != 0) {
      counters.push_back({reg, form->narrow ? static_cast<std::int32_t>(step) : step, form->narrow});
    }
  }
  return counters;
}

std::vector<LoopStep> CalledLoops::steps_of(const Trail& trail, const std::vector<Counted>& counters) {
  std::vector<LoopStep> steps;
  std::map<ThreadId, const Seen*> last;
  std::map<ThreadId, std::uint32_t> visit;
  std::uint32_t visits = 0;
  for (const Seen& now : trail.seen) {
    const Seen* const before = std::exchange(last[now.thread], &now);
    if (before == nullptr) {
      visit[now.thread] = ++visits;
      continue;
    }
    std::optional<std::int64_t> calls;
    bool same = before->called_at == now.called_at;
    for (const Counted& counter : counters) {
      const auto reg = static_cast<Register>(counter.reg);
      const std::uint64_t raw = now.registers[reg] - before->registers[reg];
      const auto way = counter.narrow ? static_cast<std::int32_t>(raw) : static_cast<std::int64_t>(raw);
      same = same && way % counter.step == 0 && way / counter.step >= 0 && (!calls || *calls == way / counter.step);
      calls = way / counter.step;
    }
    LoopStep step;
    step.cpu_s = now.cpu_s - before->cpu_s;
    step.callees_s = std::max(step.cpu_s - (now.own_s - before->own_s), 0.0);
    step.iterations = static_cast<double>(calls.value_or(0)) * trail.trips + now.done - before->done;
    step.same = same && calls && step.iterations >= 0;
    visit[now.thread] = step.same ? visit[now.thread] : ++visits;
    step.visit = visit[now.thread];
    step.thread = now.thread.value;
    steps.push_back(step);
  }
  return steps;
}

namespace {

std::map<std::uint32_t, Speed> speeds_by_thread(const std::vector<LoopStep>& steps) {
  std::map<std::uint32_t, std::vector<LoopStep>> by_thread;
  for (const LoopStep& step : steps) {
    by_thread[step.thread].push_back(step);
  }
  std::map<std::uint32_t, Speed> speeds;
  for (const auto& [thread, own] : by_thread) {
    double all_s = 0;
    for (const LoopStep& step : own) {
      all_s += step.same ? step.cpu_s : 0;
    }
    if (const auto speed = speed_of(own, all_s)) {
      speeds.emplace(thread, *speed);
    }
  }
  return speeds;
}

}  // namespace

std::map<LoopPlace, CalledSpeed> CalledLoops::speeds(const StackTable& stacks) const {
  std::map<LoopPlace, CalledSpeed> speeds;
  for (const auto& [place, trail] : trails_) {
    const std::vector<Counted> counters =
        trail.alike && trail.seen.size() >= least_seen ? counters_of(trail, stacks) : std::vector<Counted>{};
    if (counters.empty()) {
      continue;
    }
    const std::vector<LoopStep> steps = steps_of(trail, counters);
    double all_s = 0;
    double elsewhere_s = 0;
    for (const LoopStep& step : steps) {
      all_s += step.same ? step.cpu_s : 0;
      elsewhere_s += step.same ? step.callees_s : 0;
    }
    const auto speed = judge(steps) == Verdict::sound ? speed_of(steps, all_s) : std::nullopt;
    if (speed && all_s > elsewhere_s) {
      const double part = 1 - elsewhere_s / all_s;
      speeds.emplace(place, CalledSpeed{*speed, part, share_interval(part, static_cast<double>(steps.size())),
                                        speeds_by_thread(steps)});
    }
  }
  return speeds;
}

}  // namespace crosstalk::attribution
