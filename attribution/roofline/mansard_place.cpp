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

/// The kind of most of its floating-point instructions.
Kind floating_kind(const LoopWork& work) {
  std::optional<models::Width> most;
  for (const models::Width width : models::all_widths) {
    if (!most || work.mix.of_width(width) > work.mix.of_width(*most)) {
      most = width;
    }
  }
  return models::kind_of(*most);
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

/// The widest instructions up to the loop's whose groups were measured.
std::optional<models::Width> measured_width(const models::Machine& machine, Level level, models::Width widest) {
  std::optional<models::Width> width;
  for (const models::GroupRate& group : machine.groups) {
    const bool fits = group.level == level && group.width <= widest && group.per_cycle.value;
    width = fits && (!width || group.width > *width) ? std::optional(group.width) : width;
  }
  return width;
}

/// The ridge that was measured with the kind of instructions, or with the floating-point ones of the same width.
const models::RidgeRate* ridge_of(const models::Machine& machine, Level level, models::Width width, Kind kind) {
  const models::RidgeRate* const own = machine.ridge_of(level, width, kind);
  return own != nullptr ? own : machine.ridge_of(level, width, models::kind_of(width));
}

/// M of a level, and m at its ridge. The ridge of a mix of kinds is not where that of its main kind was measured, so m
/// is M less the part that the instructions beside cost there: at most min(M, N / intensity) was to be had.
std::optional<Hill> hill_of(const models::Machine& machine, Level level, models::Width widest, Kind kind) {
  const auto width = measured_width(machine, level, widest);
  const models::RidgeRate* const ridge = width ? ridge_of(machine, level, *width, kind) : nullptr;
  const models::KindLimits* const beside = ridge != nullptr ? machine.limits_of(ridge->kind) : nullptr;
  if (beside == nullptr || !beside->per_cycle.value || ridge->fillers == 0) {
    return std::nullopt;
  }
  const auto most = models::roofline::estimate_of_figure(machine.most_of_groups(level, *width), least_spread);
  const auto rate = models::roofline::estimate_of_figure(&ridge->per_cycle, least_spread);
  if (!most || !rate) {
    return std::nullopt;
  }
  const double intensity = ridge->fillers / block_memory_instructions;
  const double ideal = std::min(most->value(), *beside->per_cycle.value / intensity);
  const auto at_ridge = scaled(*rate, most->value() / ideal);
  return at_ridge ? std::optional(Hill{level, *most, least(*at_ridge, *most)}) : std::nullopt;
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
                "the rates of kinds of instructions are not in the calibration; crosstalk calibrate adds them");
  }
  const Estimate& other = others->per_cycle;
  const double width = std::max(retirement_width(retired->value()), std::min(other.value(), retired->value()));
  std::vector<Hill> hills;
  for (const Level level : models::all_levels) {
    const auto accessed = work.accesses.width.value_or(models::Width::avx512);
    if (const auto hill = hill_of(machine, level, accessed, others->kind)) {
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
