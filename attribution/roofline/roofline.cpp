// SPDX-License-Identifier: Apache-2.0
#include "attribution/roofline/roofline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "attribution/busy/loop_figures.h"
#include "models/roofline/machine_roofs.h"

namespace crosstalk::attribution {
namespace {

using models::Unit;
using models::roofline::Advice;
using models::roofline::Basis;
using models::roofline::Estimate;
using models::roofline::LoopPoint;
using models::roofline::Verdict;

constexpr double least_own = 0.3;  // part of a loop's time that is its own
// The traffic of levels beyond the first is modelled. Kernels that one level limits kept it busy for 81 to 98 % of the
// time by this model (docs/accuracy.md, "Busy times, work and waits").
constexpr double traffic_error = 0.25;

/// Returns the amount of an iteration. Its interval leaves out the uncertainty of the number of iterations.
Result<Estimate> amount_of(const Rate& rate, const Rate& iterations) {
  if (!rate.per_s) {
    return fail(ErrorCode::not_found, rate.unknown);
  }
  const auto width = [](const Rate& of) {
    return of.ci95 && *of.per_s > 0 ? (of.ci95->high - of.ci95->low) / 2 / *of.per_s : 0.0;
  };
  const double amount = *rate.per_s / *iterations.per_s;
  if (rate.lookaheads == 0 && !rate.counted) {
    return Estimate::exact(amount, Basis::decoded);
  }
  const double all = width(rate);
  const double of_iterations = width(iterations);
  const double own = std::min(1.0, std::sqrt(std::max(0.0, all * all - of_iterations * of_iterations)));
  return Estimate::of(amount, amount * (1 - own), amount * (1 + own), Basis::sampled);
}

/// Seconds of an iteration of one thread.
Result<Estimate> iteration_time(const Rate& iterations) {
  const double rate = *iterations.per_s;
  const Interval ci95 = iterations.ci95.value_or(Interval{rate, rate});
  const double low = std::max(ci95.low, rate * 1e-3);
  return Estimate::of(1 / rate, 1 / std::max(ci95.high, rate), 1 / std::min(low, rate), Basis::sampled);
}

Result<Estimate> bytes_from(const LoopFigures& figures, Unit unit, double iterations_per_s) {
  const auto& per_s = figures.per_s[unit];
  if (!per_s) {
    return fail(ErrorCode::not_found, figures.reasons[unit].empty() ? "not known" : figures.reasons[unit]);
  }
  const double bytes = *per_s / iterations_per_s;
  return Estimate::of(bytes, bytes * (1 - traffic_error), bytes * (1 + traffic_error), Basis::modelled);
}

LoopPoint point_of(const LoopRow& loop) {
  const LoopRates& rates = loop.rates;
  const LoopFigures& figures = *loop.figures;
  LoopPoint point;
  point.flops = amount_of(rates.flops, rates.iterations);
  point.bytes_core = amount_of(rates.bytes, rates.iterations);
  point.bytes_l2 = bytes_from(figures, Unit::l2, *rates.iterations.per_s);
  point.bytes_l3 = bytes_from(figures, Unit::l3, *rates.iterations.per_s);
  point.bytes_memory = bytes_from(figures, Unit::memory, *rates.iterations.per_s);
  point.cpu_s = iteration_time(rates.iterations);
  return point;
}

/// Returns the reason why the loop has no place; empty: it may have one.
std::string obstacle(const LoopRow& loop) {
  if (!loop.figures) {
    return "it takes less than a thousandth of the CPU time";
  }
  for (const Rate* rate : {&loop.rates.iterations, &loop.rates.flops, &loop.rates.bytes}) {
    if (!rate->per_s) {
      return rate->unknown;
    }
  }
  if (*loop.rates.flops.per_s <= 0) {
    return "it does no floating-point operation";
  }
  return loop.figures->flops ? "" : "the kinds of its operations are not known";
}

/// True if the floating-point units limit the loop, and no bandwidth does: it is at their roof only, or at none and
/// theirs is the next above.
bool is_held_in_core(const Verdict& verdict) {
  const auto is_compute = [](const auto& roof) { return roof.kind == models::roofline::RoofKind::compute; };
  return verdict.reached.empty() ? verdict.above && is_compute(*verdict.above)
                                 : std::all_of(verdict.reached.begin(), verdict.reached.end(), is_compute);
}

/// Removes advice that the loop follows already, and puts advice for the roof that limits it first. `held_in_core`: the
/// floating-point units limit the loop.
void fit_advice(const LoopFigures& figures, bool held_in_core, std::vector<Advice>& given) {
  constexpr double nearly_all = 0.95;
  constexpr std::array<Advice, 3> in_core = {Advice::vectorise, Advice::multiply_add, Advice::independent_operations};
  const bool vector = figures.packed.value_or(0) >= nearly_all;
  std::erase_if(given, [&](Advice advice) { return vector && advice == Advice::vectorise; });
  if (held_in_core && vector) {
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
}

/// Describes a loop that accesses no memory. It has no intensity; only the floating-point units limit it.
std::string without_bytes(const LoopRow& loop, const models::roofline::Roof& compute) {
  const double part = *loop.rates.flops.per_s / compute.height.value();
  return "it loads and stores nothing, and reaches " + std::to_string(std::lround(100 * part)) + " % of the FP units";
}

Result<RooflineLoop> placed(const LoopRow& loop, const models::Machine& machine) {
  const double threads = std::max(1.0, loop.figures->threads);
  const LoopPoint point = point_of(loop);
  const auto performance = models::roofline::performance(point);
  const auto intensity = models::roofline::intensity(point);
  auto compute = models::roofline::compute_roof(machine, *loop.figures->flops, threads);
  if (compute && *loop.rates.bytes.per_s <= 0) {
    return fail(ErrorCode::not_found, without_bytes(loop, *compute));
  }
  if (!performance || !intensity || !compute) {
    return tl::unexpected<Error>(!performance ? performance.error() : !intensity ? intensity.error() : compute.error());
  }
  std::vector<models::roofline::Roof> bandwidths = models::roofline::load_roofs(machine, threads);
  const auto carm = models::roofline::Carm::of(bandwidths, *compute);
  if (!carm) {
    return tl::unexpected<Error>(carm.error());
  }
  auto verdict = carm->judge(*intensity, *performance);
  if (!verdict) {
    return tl::unexpected<Error>(verdict.error());
  }
  fit_advice(*loop.figures, is_held_in_core(*verdict), verdict->advice);
  auto irm = models::roofline::hierarchical_verdict(carm->bandwidths(), *compute, point);
  if (irm) {
    fit_advice(*loop.figures, irm->region == models::roofline::Region::compute, irm->advice);
  }
  return RooflineLoop{
      &loop,         threads, *performance, *intensity, carm->bandwidths(), *std::move(compute), std::move(*verdict),
      std::move(irm)};
}

}  // namespace

Roofline roofline_of(const Analysis& analysis, const models::Machine& machine) {
  Roofline result;
  std::map<std::string, Unplaced> unplaced;
  for (const LoopRow& loop : analysis.loops) {
    if (loop.self_s < least_own * loop.cpu_s) {
      continue;
    }
    std::string why = obstacle(loop);
    if (why.empty()) {
      auto at = placed(loop, machine);
      if (at) {
        result.placed_s += loop.self_s;
        result.loops.push_back(std::move(*at));
        continue;
      }
      why = at.error().message;
    }
    Unplaced& of = unplaced[why];
    of.self_s += loop.self_s;
    ++of.loops;
  }
  for (auto& [why, of] : unplaced) {
    of.why = why;
    result.unplaced.push_back(std::move(of));
  }
  std::stable_sort(result.unplaced.begin(), result.unplaced.end(),
                   [](const Unplaced& a, const Unplaced& b) { return a.self_s > b.self_s; });
  std::stable_sort(result.loops.begin(), result.loops.end(),
                   [](const RooflineLoop& a, const RooflineLoop& b) { return a.loop->self_s > b.loop->self_s; });
  return result;
}

}  // namespace crosstalk::attribution
