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

/// The kind of most of its instructions that access no memory: floating point of the widest sort, or whole numbers.
Kind kind_of_others(const LoopWork& work) {
  const auto& point = work.point;
  const bool floating = point.fp_instructions && point.other_instructions &&
                        2 * point.fp_instructions->value() > point.other_instructions->value();
  if (!floating) {
    return Kind::integer_add;
  }
  std::optional<models::Width> most;
  for (const models::Width width :
       {models::Width::scalar, models::Width::sse, models::Width::avx2, models::Width::avx512}) {
    if (!most || work.mix.of_width(width) > work.mix.of_width(*most)) {
      most = width;
    }
  }
  return kind_of(*most);
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

/// M of a level, and m at its ridge: the rate of the groups that fill the buffer as the loop's instructions do (eq. 6).
std::optional<Hill> hill_of(const models::Machine& machine, Level level, models::Width widest, const Estimate& other,
                            double buffer_of_loop) {
  const std::vector<Group> groups = groups_of(machine, level, widest);
  const models::KindLimits* const nop = machine.limits_of(Kind::nop);
  if (groups.empty() || groups.front().fillers > 0 || nop == nullptr) {
    return std::nullopt;
  }
  const Estimate most = groups.front().rate;
  const double ridge = other.value() / most.value();
  const auto held = models::roofline::in_flight(buffer_of_loop, ridge, block_memory_instructions);
  const double buffer_of_groups = nop->buffer.value.value_or(buffer_of_loop);
  const double fillers =
      held ? std::max(0.0, block_memory_instructions * (buffer_of_groups / held->instructions - 1)) : 0;
  const Estimate at_ridge = least(rate_at(groups, fillers), most);
  return Hill{level, most, at_ridge};
}

/// The horizontals: retirement, and the most that its other instructions reach.
std::vector<Roof> horizontals(const models::roofline::Mansard& mansard, const Estimate& other, Kind kind) {
  std::vector<Roof> roofs = mansard.retirement_roofs();
  static constexpr std::array<const char*, 6> words = {"nop",    "integer additions", "scalar FP",
                                                       "SSE FP", "AVX2 FP",           "AVX-512 FP"};
  roofs.push_back(
      {.name = words[static_cast<std::size_t>(kind)], .kind = models::roofline::RoofKind::retirement, .height = other});
  return roofs;
}

Result<RooflinePlace> placed(const LoopWork& work, const models::Machine& machine, const Estimate& intensity,
                             const Estimate& ipc) {
  const Kind kind = kind_of_others(work);
  const models::KindLimits* const limits = machine.limits_of(kind);
  const models::KindLimits* const nop = machine.limits_of(Kind::nop);
  const auto other =
      models::roofline::estimate_of_figure(limits != nullptr ? &limits->per_cycle : nullptr, least_spread);
  const auto retired = models::roofline::estimate_of_figure(nop != nullptr ? &nop->per_cycle : nullptr, 0);
  if (!other || !retired) {
    return fail(ErrorCode::not_found,
                "the limits of the re-order buffer are not in the calibration; crosstalk "
                "calibrate adds them");
  }
  const double buffer = limits->buffer.value.value_or(nop->buffer.value.value_or(0));
  std::vector<Hill> hills;
  for (const Level level : {Level::l1d, Level::l2, Level::l3, Level::memory}) {
    const auto hill = buffer > 0
                          ? hill_of(machine, level, work.accesses.width.value_or(models::Width::avx512), *other, buffer)
                          : std::nullopt;
    if (hill) {
      hills.push_back(*hill);
    }
  }
  auto mansard = models::roofline::Mansard::of(std::move(hills), *other, std::max(retired->value(), other->value()));
  const bool scalar = work.figures().packed.value_or(0) < 0.5;
  auto verdict = mansard ? mansard->judge({intensity, ipc, scalar}) : tl::unexpected<Error>(mansard.error());
  if (!verdict) {
    return tl::unexpected<Error>(verdict.error());
  }
  RooflinePlace place;
  place.points = {{std::nullopt, intensity, ipc}};
  place.roofs = horizontals(*mansard, *other, kind);
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
