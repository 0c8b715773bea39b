// SPDX-License-Identifier: Apache-2.0
// Places in the mansard model: instructions a cycle over other instructions for each memory instruction.
#include <algorithm>
#include <cmath>
#include <utility>

#include "attribution/roofline/place.h"

namespace crosstalk::attribution {
namespace {

using models::Kind;
using models::Level;
using models::roofline::Basis;
using models::roofline::Estimate;
using models::roofline::Hill;
using models::roofline::Roof;

constexpr double block_memory_instructions = 3;  // two loads and a store, as the groups were measured
constexpr double least_spread = 0.05;            // rates a cycle do not follow the frequency

Kind kind_of(models::Width width) {
  static constexpr std::array<Kind, 4> kinds = {Kind::scalar, Kind::sse, Kind::avx2, Kind::avx512};
  return kinds[static_cast<std::size_t>(width)];
}

/// The kind of most of its floating-point instructions.
Kind floating_kind(const LoopWork& work) {
  std::optional<models::Width> most;
  for (const models::Width width : models::all_widths) {
    if (!most || work.mix.of_width(width) > work.mix.of_width(*most)) {
      most = width;
    }
  }
  return kind_of(*most);
}

/// N: of instructions that access no memory, and the kind of most of them, whose entries fill the re-order buffer.
struct Others {
  Kind kind = Kind::integer_add;
  Estimate per_cycle;
};

/// Floating-point instructions and others have units of their own, so either sort may bound the mix.
Result<Others> others_of(const LoopWork& work, const models::Machine& machine) {
  const auto rate = [&](Kind kind) {
    const models::KindLimits* const limits = machine.limits_of(kind);
    return models::roofline::estimate_of_figure(limits != nullptr ? &limits->per_cycle : nullptr, least_spread);
  };
  const auto& point = work.point;
  const double all = point.other_instructions ? point.other_instructions->value() : 0;
  // One that computes on memory is a memory instruction, so the floating-point ones may be more than the others.
  const double floating = point.fp_instructions && all > 0 ? std::min(1.0, point.fp_instructions->value() / all) : 0;
  const auto whole = rate(Kind::integer_add);
  if (floating <= 0 || !whole) {
    return whole ? Result<Others>(Others{Kind::integer_add, *whole}) : tl::unexpected<Error>(whole.error());
  }
  const Kind kind = floating_kind(work);
  const auto units = rate(kind);
  const auto by_units = units ? scaled(*units, 1 / floating) : units;
  const auto by_whole = floating < 1 ? scaled(*whole, 1 / (1 - floating)) : by_units;
  if (!by_units || !by_whole) {
    return tl::unexpected<Error>((by_units ? by_whole : by_units).error());
  }
  const Estimate mixed = least(*by_units, *by_whole);
  return Others{floating >= 0.5 ? kind : Kind::integer_add, floating < 1 ? on_basis(mixed, Basis::modelled) : mixed};
}

struct Group {
  double fillers = 0;
  Estimate rate;
};

/// The measured groups of a level with the widest instructions up to the loop's, by fillers.
std::vector<Group> groups_of(const models::Machine& machine, Level level, models::Width widest) {
  std::optional<models::Width> width;
  for (const models::GroupRate& group : machine.groups) {
    const bool fits = group.level == level && group.width <= widest && group.per_cycle.value;
    width = fits && (!width || group.width > *width) ? std::optional(group.width) : width;
  }
  std::vector<Group> found;
  for (const models::GroupRate& group : machine.groups) {
    if (width && group.level == level && group.width == *width) {
      if (const auto rate = models::roofline::estimate_of_figure(&group.per_cycle, least_spread)) {
        found.push_back({static_cast<double>(group.fillers), *rate});
      }
    }
  }
  std::sort(found.begin(), found.end(), [](const Group& a, const Group& b) { return a.fillers < b.fillers; });
  return found;
}

/// Between two measured numbers of fillers linear; beyond the last that one's rate.
Estimate rate_at(const std::vector<Group>& groups, double fillers) {
  const auto more =
      std::find_if(groups.begin(), groups.end(), [&](const Group& one) { return one.fillers >= fillers; });
  if (more == groups.begin() || more == groups.end()) {
    return more == groups.end() ? on_basis(groups.back().rate, Basis::modelled) : more->rate;
  }
  const Group& fewer = *(more - 1);
  const double part = (fillers - fewer.fillers) / (more->fillers - fewer.fillers);
  const auto between = combined([part](double a, double b) { return a * (1 - part) + b * part; }, rising(fewer.rate),
                                rising(more->rate));
  return between ? on_basis(*between, Basis::modelled) : fewer.rate;
}

/// The rate that the re-order buffer allows. If retirement bounded the groups, their measured rate is too low: Little's
/// law and the level's latency then give a rate between the measured one and M.
Estimate without_retirement(const Group& group, const Estimate& most, const models::Machine& machine, Level level) {
  constexpr double near = 0.5;  // fetching them takes time, too
  const models::KindLimits* const nop = machine.limits_of(Kind::nop);
  const models::Figure* const latency = machine.latency_of(level);
  const auto hz = models::roofline::core_hz(machine, 1);
  if (nop == nullptr || !nop->per_cycle.value || !nop->buffer.value || latency == nullptr || !latency->value || !hz ||
      group.rate.value() <
          near * *nop->per_cycle.value * block_memory_instructions / (block_memory_instructions + group.fillers)) {
    return group.rate;
  }
  const auto held = models::roofline::in_flight(*nop->buffer.value, group.fillers / block_memory_instructions,
                                                block_memory_instructions);
  const auto rate =
      held ? models::roofline::memory_rate(*held, *latency->value * hz->value()) : tl::unexpected<Error>(held.error());
  const auto by_latency = rate ? Estimate::exact(*rate, Basis::modelled) : tl::unexpected<Error>(rate.error());
  return by_latency ? least(most, greatest(group.rate, *by_latency)) : group.rate;
}

/// M of a level, and m at its ridge: the rate of the groups that fill the buffer as the loop's instructions do (eq. 6).
std::optional<Hill> hill_of(const models::Machine& machine, Level level, models::Width widest, const Estimate& other,
                            double buffer_of_loop) {
  std::vector<Group> groups = groups_of(machine, level, widest);
  const models::KindLimits* const nop = machine.limits_of(Kind::nop);
  if (groups.empty() || groups.front().fillers > 0 || nop == nullptr) {
    return std::nullopt;
  }
  const Estimate most = std::max_element(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
                          return a.rate.value() < b.rate.value();
                        })->rate;  // fillers make no access faster
  for (Group& group : groups) {
    group.rate = without_retirement(group, most, machine, level);
  }
  const double ridge = other.value() / most.value();
  const auto held = models::roofline::in_flight(buffer_of_loop, ridge, block_memory_instructions);
  const double buffer_of_groups = nop->buffer.value.value_or(buffer_of_loop);
  const double fillers =
      held ? std::max(0.0, block_memory_instructions * (buffer_of_groups / held->instructions - 1)) : 0;
  const Estimate at_ridge = least(rate_at(groups, fillers), most);
  return Hill{level, most, at_ridge};
}

/// The horizontals: retirement, and the most that its other instructions reach.
std::vector<Roof> horizontals(const models::roofline::Mansard& mansard, const Estimate& other) {
  std::vector<Roof> roofs = mansard.retirement_roofs();
  for (std::size_t i = 0; i + 1 < roofs.size(); ++i) {
    roofs[i].ceiling = models::roofline::Ceiling::ilp;
  }
  roofs.push_back({.name = "its other instructions",
                   .kind = models::roofline::RoofKind::retirement,
                   .ceiling = models::roofline::Ceiling::mix,
                   .height = other});
  return roofs;
}

/// D_M: a whole number, which the measured rate comes near.
double retirement_width(double measured) {
  constexpr double near = 0.06;
  const double whole = std::round(measured);
  return std::abs(measured - whole) <= near * whole ? whole : measured;
}

Result<RooflinePlace> placed(const LoopWork& work, const models::Machine& machine, const Estimate& intensity,
                             const Estimate& ipc) {
  const auto others = others_of(work, machine);
  const models::KindLimits* const nop = machine.limits_of(Kind::nop);
  const auto retired = models::roofline::estimate_of_figure(nop != nullptr ? &nop->per_cycle : nullptr, 0);
  if (!others || !retired) {
    return fail(ErrorCode::not_found,
                "the limits of the re-order buffer are not in the calibration; crosstalk "
                "calibrate adds them");
  }
  const Estimate& other = others->per_cycle;
  const models::KindLimits* const limits = machine.limits_of(others->kind);
  const double buffer =
      limits != nullptr && limits->buffer.value ? *limits->buffer.value : nop->buffer.value.value_or(0);
  const double width = std::max(retirement_width(retired->value()), std::min(other.value(), retired->value()));
  std::vector<Hill> hills;
  for (const Level level : models::all_levels) {
    const auto hill = buffer > 0
                          ? hill_of(machine, level, work.accesses.width.value_or(models::Width::avx512), other, buffer)
                          : std::nullopt;
    if (hill) {
      hills.push_back(*hill);
    }
  }
  auto mansard = models::roofline::Mansard::of(std::move(hills), other, width);
  const bool scalar = work.figures().packed.value_or(0) < 0.5;
  auto verdict = mansard ? mansard->judge({intensity, ipc, scalar}) : tl::unexpected<Error>(mansard.error());
  if (!verdict) {
    return tl::unexpected<Error>(verdict.error());
  }
  RooflinePlace place;
  place.points = {{std::nullopt, intensity, ipc}};
  place.roofs = horizontals(*mansard, other);
  place.verdict = *std::move(verdict);
  place.hills = *std::move(mansard);
  return place;
}

}  // namespace

Result<RooflinePlace> mansard_place(const LoopWork& work, const models::Machine& machine) {
  const auto& point = work.point;
  if (point.memory_instructions && point.memory_instructions->high() <= 0) {
    return fail(ErrorCode::not_found, "it has no memory instruction");
  }
  const auto intensity = models::roofline::instruction_intensity(point);
  const auto ipc = models::roofline::instructions_per_cycle(point);
  if (!intensity || !ipc) {
    return tl::unexpected<Error>((intensity ? ipc : intensity).error());
  }
  return placed(work, machine, *intensity, *ipc);
}

}  // namespace crosstalk::attribution
