// SPDX-License-Identifier: Apache-2.0
// Places in the original and in the run-time-oriented model: roofs with ceilings below them.
#include <algorithm>
#include <cmath>
#include <utility>

#include "attribution/roofline/place.h"
#include "models/roofline/orm.h"

namespace crosstalk::attribution {
namespace {

using models::roofline::Advice;
using models::roofline::Basis;
using models::roofline::Ceiling;
using models::roofline::Estimate;
using models::roofline::Feature;
using models::roofline::FeatureCost;
using models::roofline::Roof;

constexpr double usual_issue_width = 4;  // instructions a cycle, where it was not measured
constexpr double chain_error = 0.25;     // of a chain's cycles: latencies differ between cores

double running(const LoopWork& work, const models::Machine& machine) {
  return work.threads.running(models::cores_of(machine));
}

double issue_width(const models::Machine& machine) {
  const models::KindLimits* const limits = machine.limits_of(models::Kind::nop);
  return limits != nullptr && limits->per_cycle.value ? *limits->per_cycle.value : usual_issue_width;
}

/// The part of the peak that its threads' balance allows, if it is clearly below all of it.
std::optional<Roof> balance_ceiling(const LoopWork& work, const models::Machine& machine, const Roof& peak) {
  const double part = work.at_work / running(work, machine);
  const auto height = scaled(peak.height, std::min(1.0, part));
  if (work.threads.part_of_one || work.members < 2 || part >= 0.95 || !height) {
    return std::nullopt;
  }
  Roof ceiling = peak;
  ceiling.name = "measured balance";
  ceiling.ceiling = Ceiling::balance;
  ceiling.height = *height;
  return ceiling;
}

/// A.1.4 for the loop's own part of floating-point instructions.
std::optional<Roof> mix_ceiling_of(const LoopWork& work, const models::Machine& machine, const Roof& peak) {
  const auto& point = work.point;
  const auto all = sum(point.memory_instructions, point.other_instructions);
  if (!all || !point.fp_instructions || !point.flops || !point.hz || !(point.fp_instructions->value() > 0) ||
      !(all->value() > 0)) {
    return std::nullopt;
  }
  const models::roofline::CoreFigures core{.cores = static_cast<std::uint32_t>(running(work, machine)),
                                           .hz = *point.hz};
  const models::roofline::IssueFigures issue{issue_width(machine),
                                             point.flops->value() / point.fp_instructions->value(), 0};
  const double share = std::min(1.0, point.fp_instructions->value() / all->value());
  auto ceiling = models::roofline::mix_ceiling(core, issue, share, peak);
  if (!ceiling || ceiling->height.value() >= peak.height.value()) {
    return std::nullopt;
  }
  ceiling->threads = peak.threads;
  return *std::move(ceiling);
}

void add_balance(const LoopWork& work, const models::Machine& machine, const RooflineOptions& options,
                 std::vector<Roof>& compute) {
  const Roof peak = compute.back();
  if (auto measured = balance_ceiling(work, machine, peak)) {
    compute.push_back(*std::move(measured));
  }
  if (options.imbalance) {
    if (auto ladder = models::roofline::imbalance_ceilings(*options.imbalance, compute.front(), peak)) {
      compute.insert(compute.end(), ladder->begin(), ladder->end());
    }
  }
}

/// The in-core roof last but for ceilings of the loop itself, which follow it.
Result<std::vector<Roof>> in_core(const LoopWork& work, const models::Machine& machine) {
  if (work.ops == CountedOperations::integer) {
    auto roof = compute_roof_of(work, machine);
    return roof ? Result<std::vector<Roof>>(std::vector<Roof>{*std::move(roof)}) : tl::unexpected<Error>(roof.error());
  }
  auto roofs = models::roofline::in_core_roofs(machine, work.precision, work.threads);
  return roofs.empty() ? fail(ErrorCode::not_found,
                              "the peak of the floating-point units is not in the calibration; run crosstalk calibrate")
                       : Result<std::vector<Roof>>(std::move(roofs));
}

/// The range of its intensity by memory if all gathered elements are in a cache, and if each brings a line of its own.
std::optional<models::roofline::IntensityBracket> gathers_of(const LoopWork& work) {
  const auto& body = work.figures().body;
  if (!body || !(body->indirect_elements > 0) || !work.point.flops || !(work.point.flops->value() > 0)) {
    return std::nullopt;
  }
  models::roofline::GatherLoop loop;
  loop.flops = work.point.flops->value();
  loop.streamed_bytes = std::max(0.0, body->streamed_bytes());
  loop.gathered = body->indirect_elements;
  const auto bracket = models::roofline::gather_bracket(loop);
  return bracket ? std::optional(*bracket) : std::nullopt;
}

/// The intensity of memory, flop/B: the whole range of the bracket of gathers, if only that is known.
Result<Estimate> memory_intensity(const LoopWork& work,
                                  const std::optional<models::roofline::IntensityBracket>& gathers) {
  const auto& bytes = work.point.bytes_memory;
  if (!bytes && gathers) {
    return Estimate::of(std::sqrt(gathers->worst * gathers->best), gathers->worst, gathers->best, Basis::assumed);
  }
  if (!bytes) {
    return fail(ErrorCode::not_found, "the bytes that it moves from memory are not known: " + bytes.error().message);
  }
  return bytes->value() > 0 ? models::roofline::intensity(work.point, models::Level::memory)
                            : fail(ErrorCode::not_found,
                                   "it moves no bytes from memory, so no roof of memory bounds it; --model carm "
                                   "places it");
}

/// The farthest level that it moves bytes from, for the run-time-oriented model.
std::optional<models::Level> farthest_level(const LoopWork& work) {
  for (const models::Level level : {models::Level::memory, models::Level::l3, models::Level::l2, models::Level::l1d}) {
    const auto& bytes = work.point.bytes(level);
    if (bytes && bytes->low() > 0) {
      return level;
    }
  }
  return std::nullopt;
}

struct DependenceRate {
  Estimate flops_per_s;
  bool by_issue = false;  // its instructions or its counter bound it, not a chain of operations
};

/// The rate of all threads that the longest chain of dependences and the number of instructions allow.
std::optional<DependenceRate> dependence_rate(const LoopWork& work, const models::Machine& machine) {
  const auto& body = work.figures().body;
  const auto& point = work.point;
  if (!body || !body->one_way || !body->chain || !point.flops || !point.hz || *body->chain <= 0) {
    return std::nullopt;
  }
  const double issue = body->instructions / issue_width(machine);
  const auto chain =
      Estimate::of(*body->chain, *body->chain * (1 - chain_error), *body->chain * (1 + chain_error), Basis::modelled);
  const auto issued = Estimate::exact(issue, Basis::modelled);
  if (!chain || !issued) {
    return std::nullopt;
  }
  const auto rate = models::roofline::ilp_rate(*point.flops, *chain, *issued, *point.hz);
  const auto all = rate ? scaled(*rate, running(work, machine)) : rate;
  const auto reached = rate_of(work);
  // A loop cannot be faster than its chain allows: then the chain is not what the model takes it for.
  return all && !(reached && surely_below(*all, *reached))
             ? std::optional(DependenceRate{*all, issue > *body->chain || !body->chain_is_fpu})
             : std::nullopt;
}

struct FeatureWords {
  const char* ceiling;
  Ceiling kind;
  Advice advice;
};
FeatureWords words_of(Feature feature, bool by_issue) {
  switch (feature) {
    case Feature::vectors:
      return {"scalar instructions", Ceiling::dlp, Advice::vectorise};
    case Feature::multiply_add:
      return {"unfused operations", Ceiling::multiply_add, Advice::multiply_add};
    case Feature::independent_operations:
      return by_issue ? FeatureWords{"its instructions", Ceiling::mix, Advice::fewer_instructions}
                      : FeatureWords{"its dependences", Ceiling::ilp, Advice::independent_operations};
    case Feature::all:
      break;
  }
  return {"all of these", Ceiling::mix, Advice::fewer_instructions};
}

Result<std::vector<FeatureCost>> costs_of(const LoopWork& work, const Roof& peak,
                                          const std::optional<DependenceRate>& dependences) {
  const double lanes = peak.width ? models::lanes(*peak.width, work.precision) : 1;
  const auto hardware = peak.operation == models::Operation::fma ? models::roofline::MultiplyAdd::fused
                                                                 : models::roofline::MultiplyAdd::separate_pipes;
  return models::roofline::feature_costs(work.point, peak, lanes, hardware,
                                         dependences ? std::optional(dependences->flops_per_s) : std::nullopt);
}

/// Ceilings of the features that the loop lacks.
void add_features(const RooflinePlace& place, std::vector<Roof>& ceilings) {
  constexpr double visible = 1.02;
  const Roof peak = ceilings.front();
  for (const FeatureCost& cost : place.costs) {
    if (cost.feature != Feature::all && cost.cost.value() > visible) {
      const FeatureWords words = words_of(cost.feature, place.held_by_issue);
      ceilings.push_back(peak);
      ceilings.back().name = words.ceiling;
      ceilings.back().ceiling = words.kind;
      ceilings.back().height = cost.ceiling;
    }
  }
}

/// The features by their cost; first what memory needs, if it bounds the loop more than they do together.
std::vector<Advice> runtime_advice(const LoopWork& work, const RooflinePlace& place, double by_memory) {
  constexpr double worth = 1 + models::roofline::worth_advice;
  std::vector<Advice> advice;
  for (const FeatureCost& cost : place.costs) {
    if (cost.feature != Feature::all && cost.cost.value() > worth) {
      advice.push_back(words_of(cost.feature, place.held_by_issue).advice);
    }
  }
  if (by_memory < place.costs.back().ceiling.value()) {
    advice.insert(advice.begin(), {Advice::locality, Advice::raise_intensity});
  }
  if (work.unbalanced()) {
    advice.insert(advice.begin(), Advice::balance_load);
  }
  return advice;
}

}  // namespace

Result<RooflinePlace> orm_place(const LoopWork& work, const models::Machine& machine, const RooflineOptions& options) {
  const auto rate = rate_of(work);
  const auto gathers = gathers_of(work);
  const auto intensity = memory_intensity(work, gathers);
  auto compute = in_core(work, machine);
  if (!rate || !intensity || !compute) {
    return tl::unexpected<Error>(!rate ? rate.error() : !intensity ? intensity.error() : compute.error());
  }
  const Roof peak = compute->back();
  add_balance(work, machine, options, *compute);
  if (auto mix = mix_ceiling_of(work, machine, peak)) {
    compute->push_back(*std::move(mix));
  }
  const std::vector<Roof> memory = models::roofline::memory_ceilings(machine, work.accesses, work.threads);
  auto verdict = models::roofline::orm_verdict(memory, *compute, *intensity, *rate);
  if (!verdict) {
    return tl::unexpected<Error>(verdict.error());
  }
  RooflinePlace place;
  place.points = {{models::Level::memory, *intensity, *rate}};
  place.roofs = memory;
  place.roofs.insert(place.roofs.end(), compute->begin(), compute->end());
  place.verdict = *std::move(verdict);
  place.gathers = gathers;
  return place;
}

Result<RooflinePlace> runtime_place(const LoopWork& work, const models::Machine& machine) {
  const auto rate = rate_of(work);
  const auto level = farthest_level(work);
  if (work.ops == CountedOperations::integer) {
    return fail(ErrorCode::not_found, "the run-time-oriented model knows floating-point features only; choose another");
  }
  auto compute = in_core(work, machine);
  if (!rate || !level || !compute) {
    return !rate    ? tl::unexpected<Error>(rate.error())
           : !level ? fail(ErrorCode::not_found, "it loads and stores nothing, or how much is not known")
                    : tl::unexpected<Error>(compute.error());
  }
  const Roof peak = compute->back();
  const auto intensity = models::roofline::intensity(work.point, *level);
  const auto bandwidths = models::roofline::moved_roofs(machine, work.accesses, work.threads);
  const auto bandwidth =
      std::find_if(bandwidths.begin(), bandwidths.end(), [&](const Roof& roof) { return roof.level == level; });
  const auto dependences = dependence_rate(work, machine);
  const auto costs = costs_of(work, peak, dependences);
  if (!intensity || bandwidth == bandwidths.end() || !costs) {
    return !intensity ? tl::unexpected<Error>(intensity.error())
           : !costs   ? tl::unexpected<Error>(costs.error())
                      : fail(ErrorCode::not_found,
                             "the bandwidth of its level is not in the calibration; run crosstalk calibrate");
  }
  RooflinePlace place;
  place.costs = *costs;
  place.held_by_issue = dependences && dependences->by_issue;
  std::vector<Roof> ceilings = {peak};
  add_features(place, ceilings);
  if (auto balance = balance_ceiling(work, machine, peak)) {
    ceilings.push_back(*std::move(balance));
  }
  auto verdict = models::roofline::orm_verdict(std::vector<Roof>{*bandwidth}, ceilings, *intensity, *rate);
  if (!verdict) {
    return tl::unexpected<Error>(verdict.error());
  }
  place.points = {{level, *intensity, *rate}};
  place.roofs = {*bandwidth};
  place.roofs.insert(place.roofs.end(), ceilings.begin(), ceilings.end());
  place.verdict = *std::move(verdict);
  std::copy_if(bandwidths.begin(), bandwidths.end(), std::back_inserter(place.machine),
               [&](const Roof& roof) { return roof.level != level; });
  place.verdict.advice = runtime_advice(work, place, bandwidth->height.value() * intensity->value());
  return place;
}

}  // namespace crosstalk::attribution
