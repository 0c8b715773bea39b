// SPDX-License-Identifier: Apache-2.0
#include "attribution/roofline/place.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/roofline/carm.h"

namespace crosstalk::attribution {
namespace {

using models::roofline::Advice;
using models::roofline::Estimate;
using models::roofline::Intersection;
using models::roofline::Roof;
using models::roofline::RoofKind;
using models::roofline::Verdict;

/// True if the units limit the loop, and no bandwidth does: it is at their roof only, or at none and theirs is the next
/// above.
bool is_held_in_core(const Verdict& verdict) {
  const auto is_compute = [](const Intersection& roof) { return roof.kind == RoofKind::compute; };
  return verdict.reached.empty() ? verdict.above && is_compute(*verdict.above)
                                 : std::all_of(verdict.reached.begin(), verdict.reached.end(), is_compute);
}

/// True if the nearest cache limits the loop: no data can come nearer, but registers.
bool is_held_by_nearest(const RooflinePlace& place) {
  const auto is_nearest = [](const Intersection& roof) { return roof.level == models::Level::l1d; };
  return place.bottleneck == models::Level::l1d ||
         (!place.verdict.reached.empty() &&
          std::all_of(place.verdict.reached.begin(), place.verdict.reached.end(), is_nearest));
}

/// Removes advice that the loop follows already, and puts advice for the roof that limits it first.
void fit_advice(const LoopWork& work, const models::Machine& machine, bool held_in_core, std::vector<Advice>& given) {
  constexpr double nearly_all = 0.95;
  constexpr std::array<Advice, 3> in_core = {Advice::vectorise, Advice::multiply_add, Advice::independent_operations};
  const bool vector = work.figures().packed.value_or(0) >= nearly_all && work.ops != CountedOperations::integer;
  const bool all_cores = work.at_work > 0.95 * models::cores_of(machine);
  std::erase_if(given, [&](Advice advice) {
    return (vector && advice == Advice::vectorise) || (all_cores && advice == Advice::thread);
  });
  const auto has = [&](Advice advice) { return std::find(given.begin(), given.end(), advice) != given.end(); };
  if (held_in_core && vector && !has(Advice::independent_operations)) {
    given.push_back(Advice::independent_operations);
  }
  std::stable_partition(given.begin(), given.end(), [&](Advice advice) {
    return held_in_core == (std::find(in_core.begin(), in_core.end(), advice) != in_core.end());
  });
  // Placed loops mostly access memory in order already, so locality comes before the access pattern.
  const auto pattern = std::find(given.begin(), given.end(), Advice::access_pattern);
  const auto locality = std::find(given.begin(), given.end(), Advice::locality);
  if (pattern < locality && locality != given.end()) {
    std::iter_swap(pattern, locality);
  }
  if (work.unbalanced()) {
    std::erase(given, Advice::balance_load);
    given.insert(given.begin(), Advice::balance_load);
  }
}

void prefer_registers(std::vector<Advice>& given) {
  std::erase_if(given, [](Advice advice) {
    return advice == Advice::locality || advice == Advice::access_pattern || advice == Advice::raise_intensity;
  });
  const auto after_balance =
      std::find_if(given.begin(), given.end(), [](Advice advice) { return advice != Advice::balance_load; });
  given.insert(after_balance, Advice::raise_intensity);
}

Roof of_all_cores(Roof roof, std::uint32_t cores) {
  roof.name += ", " + std::to_string(cores) + " threads";
  return roof;
}

/// The roofs of other widths, and of all cores if the loop runs on fewer, for comparison.
std::vector<Roof> faint_roofs(const LoopWork& work, const models::Machine& machine) {
  const bool floating = work.ops != CountedOperations::integer;
  std::vector<Roof> faint =
      floating ? models::roofline::width_roofs(machine, work.precision, work.threads) : std::vector<Roof>();
  const std::uint32_t cores = models::cores_of(machine);
  if (work.threads.part_of_one || work.threads.at_once >= cores) {
    return faint;
  }
  for (const Roof& roof : models::roofline::moved_roofs(machine, work.accesses, {cores})) {
    if (roof.level == models::Level::memory) {
      faint.push_back(of_all_cores(roof, cores));
    }
  }
  const auto tops = models::roofline::width_roofs(machine, work.precision, {cores});
  if (!tops.empty() && floating) {
    faint.push_back(of_all_cores(tops.back(), cores));
  }
  return faint;
}

Verdict verdict_of(const models::roofline::HierarchicalVerdict& found, const Roof& compute, const Estimate& rate) {
  Verdict verdict;
  verdict.region = found.region;
  verdict.gain_bound = found.gain_bound;
  verdict.advice = found.advice;
  verdict.undecided = found.undecided;
  if (!found.bound) {
    return verdict;
  }
  const auto least = std::min_element(found.points.begin(), found.points.end(), [](const auto& a, const auto& b) {
    return (a.bound ? a.bound->value() : INFINITY) < (b.bound ? b.bound->value() : INFINITY);
  });
  const bool slanted = least != found.points.end() && least->bound && least->bound->value() < compute.height.value();
  Intersection at = slanted ? Intersection{models::roofline::level_in_words(least->level),
                                           *found.bound,
                                           least->level,
                                           {},
                                           RoofKind::bandwidth}
                            : Intersection{compute.name, *found.bound};
  if (surely_below(*found.bound, rate)) {
    verdict.below = std::move(at);
  } else if (overlap(*found.bound, rate)) {
    verdict.reached.push_back(std::move(at));
  } else {
    verdict.above = std::move(at);
  }
  return verdict;
}

}  // namespace

Result<Estimate> rate_of(const LoopWork& work) {
  return work.point.flops ? models::roofline::performance(work.point) : work.point.flops;
}

Result<RooflinePlace> carm_place(const LoopWork& work, const models::Machine& machine) {
  const auto rate = rate_of(work);
  auto compute = compute_roof_of(work, machine);
  if (!rate || !compute || !work.point.bytes_core) {
    return tl::unexpected<Error>(!rate ? rate.error() : !compute ? compute.error() : work.point.bytes_core.error());
  }
  if (work.point.bytes_core->high() <= 0) {
    return fail(ErrorCode::not_found, "it loads and stores nothing, and reaches " +
                                          std::to_string(std::lround(100 * rate->value() / compute->height.value())) +
                                          " % of the " + compute->name);
  }
  const auto intensity = models::roofline::intensity(work.point);
  const auto carm =
      models::roofline::Carm::of(models::roofline::requested_roofs(machine, work.accesses, work.threads), *compute);
  auto verdict = intensity && carm ? carm->judge(*intensity, *rate)
                                   : tl::unexpected<Error>(intensity ? carm.error() : intensity.error());
  if (!verdict) {
    return tl::unexpected<Error>(verdict.error());
  }
  RooflinePlace place;
  place.points = {{std::nullopt, *intensity, *rate}};
  place.roofs = carm->bandwidths();
  place.roofs.push_back(*std::move(compute));
  place.machine = faint_roofs(work, machine);
  place.verdict = *std::move(verdict);
  return place;
}

Result<RooflinePlace> level_place(const LoopWork& work, const models::Machine& machine, bool integrated) {
  const auto rate = rate_of(work);
  auto compute = compute_roof_of(work, machine);
  if (!rate || !compute) {
    return tl::unexpected<Error>(rate ? compute.error() : rate.error());
  }
  const auto carm =
      models::roofline::Carm::of(integrated ? models::roofline::requested_roofs(machine, work.accesses, work.threads)
                                            : models::roofline::moved_roofs(machine, work.accesses, work.threads),
                                 *compute);
  if (!carm) {
    return tl::unexpected<Error>(carm.error());
  }
  const std::vector<Roof>& bandwidths = carm->bandwidths();  // none above a nearer level's
  const auto found = models::roofline::hierarchical_verdict(bandwidths, *compute, work.point);
  if (!found) {
    return tl::unexpected<Error>(found.error());
  }
  RooflinePlace place;
  for (const auto& point : found->points) {
    if (point.intensity && point.intensity->value() > 0) {
      place.points.push_back({point.level, *point.intensity, *rate});
    }
  }
  const bool any_far = std::any_of(found->points.begin(), found->points.end(), [](const auto& point) {
    return point.level != models::Level::l1d && point.bound.has_value();
  });
  if (place.points.empty() || !any_far) {
    return fail(ErrorCode::not_found,
                "the traffic of its levels is not known: " +
                    (work.point.bytes_memory ? "it moves no bytes" : work.point.bytes_memory.error().message));
  }
  place.roofs = bandwidths;
  place.machine = faint_roofs(work, machine);
  place.verdict = verdict_of(*found, *compute, *rate);
  place.roofs.push_back(*std::move(compute));
  place.bottleneck = found->bottleneck;
  place.bound = found->bound ? std::optional(*found->bound) : std::nullopt;
  return place;
}

Result<RooflinePlace> place_in(RooflineModel model, const LoopWork& work, const models::Machine& machine,
                               const RooflineOptions& options) {
  const auto found = [&]() -> Result<RooflinePlace> {
    switch (model) {
      case RooflineModel::carm:
        return carm_place(work, machine);
      case RooflineModel::orm:
        return orm_place(work, machine, options);
      case RooflineModel::hierarchical:
        return level_place(work, machine, false);
      case RooflineModel::irm:
        return level_place(work, machine, true);
      case RooflineModel::runtime:
        return runtime_place(work, machine);
      case RooflineModel::sparse:
        return sparse_place(work, machine);
      case RooflineModel::mansard:
        break;
    }
    return mansard_place(work, machine);
  };
  auto place = found();
  if (place && model != RooflineModel::runtime) {
    const bool by_level = model == RooflineModel::hierarchical || model == RooflineModel::irm;
    fit_advice(work, machine,
               by_level ? place->verdict.region == models::roofline::Region::compute : is_held_in_core(place->verdict),
               place->verdict.advice);
    if (const Verdict& verdict = place->verdict; verdict.below && !verdict.above && verdict.reached.empty()) {
      // Above every roof there is nothing to win by what the roofs are of.
      std::erase_if(place->verdict.advice, [](Advice advice) { return advice != Advice::balance_load; });
    } else if (is_held_by_nearest(*place)) {
      prefer_registers(place->verdict.advice);
    }
  }
  return place;
}

}  // namespace crosstalk::attribution
