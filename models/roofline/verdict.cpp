// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/verdict.h"

#include <algorithm>

#include "models/words.h"

namespace crosstalk::models::roofline {
namespace {

Result<Estimate> gain_bound_of(const Verdict& verdict, const Estimate& performance) {
  if (verdict.above) {
    return gain_at(verdict.above->height, performance);
  }
  if (!verdict.reached.empty()) {
    return gain_at(verdict.reached.back().height, performance);
  }
  return fail(ErrorCode::not_found, verdict.below ? "the point lies above every roof, so the roofs are too low; "
                                                    "calibrate again while the machine is idle"
                                                  : "no roof is known; run crosstalk calibrate");
}

std::string why_undecided(const Verdict& verdict) {
  if (verdict.reached.size() > 1) {
    std::vector<std::string> names;
    std::transform(verdict.reached.begin(), verdict.reached.end(), std::back_inserter(names),
                   [](const Intersection& roof) { return roof.name; });
    return "the point may be at the roofs of " + enumerated(names);
  }
  return verdict.region == Region::undecided ? "the interval of its intensity spans a ridge" : "";
}

void append(std::vector<Advice>& advice, std::initializer_list<Advice> more) {
  advice.insert(advice.end(), more.begin(), more.end());
}

}  // namespace

Region region_between(const Estimate& intensity, const Estimate& near_ridge, const Estimate& far_ridge) {
  if (surely_below(intensity, near_ridge)) {
    return Region::memory;
  }
  if (intensity.low() >= far_ridge.high()) {
    return Region::compute;
  }
  return intensity.low() >= near_ridge.high() && surely_below(intensity, far_ridge) ? Region::mixed : Region::undecided;
}

Verdict verdict_among(Region region, std::vector<Intersection> intersections, const Estimate& performance) {
  std::stable_sort(intersections.begin(), intersections.end(),
                   [](const Intersection& a, const Intersection& b) { return a.height.value() < b.height.value(); });
  Verdict verdict;
  verdict.region = region;
  for (Intersection& roof : intersections) {
    if (surely_below(roof.height, performance)) {
      verdict.below = std::move(roof);
    } else if (overlap(roof.height, performance)) {
      verdict.reached.push_back(std::move(roof));
    } else if (!verdict.above) {
      verdict.above = std::move(roof);
    }
  }
  verdict.gain_bound = gain_bound_of(verdict, performance);
  verdict.undecided = why_undecided(verdict);
  return verdict;
}

std::vector<Intersection> bottlenecks(const Verdict& verdict) {
  std::vector<Intersection> roofs = verdict.reached;
  if (roofs.empty()) {
    for (const auto& next : {verdict.below, verdict.above}) {
      if (next) {
        roofs.push_back(*next);
      }
    }
  }
  return roofs;
}

bool below_every_roof(const Verdict& verdict) { return verdict.above && !verdict.below && verdict.reached.empty(); }

void advise_by_region(Verdict& verdict) {
  if (below_every_roof(verdict)) {
    append(verdict.advice, {Advice::hide_latency, Advice::balance_load, Advice::uncounted_instructions});
  }
  if (verdict.region != Region::compute) {
    append(verdict.advice, {Advice::access_pattern, Advice::locality});
  }
  if (verdict.region != Region::memory) {
    append(verdict.advice, {Advice::vectorise, Advice::thread});
  }
}

Advice advice_to_reach(Ceiling ceiling) {
  switch (ceiling) {
    case Ceiling::tlp:
      return Advice::thread;
    case Ceiling::ilp:
    case Ceiling::single_issue:
      return Advice::independent_operations;
    case Ceiling::dlp:
      return Advice::vectorise;
    case Ceiling::multiply_add:
      return Advice::multiply_add;
    case Ceiling::mix:
      return Advice::fewer_instructions;
    case Ceiling::balance:
      return Advice::balance_load;
    case Ceiling::one_socket:
      return Advice::unroll_and_pad;
    case Ceiling::affinity:
      return Advice::affinity;
    case Ceiling::software_prefetch:
      return Advice::prefetch;
    case Ceiling::snoop_filter:
      return Advice::smaller_data;
    case Ceiling::active_cores:
      break;
  }
  return Advice::spread_traffic;
}

Result<Estimate> gain_at(const Estimate& height, const Estimate& performance) {
  if (auto checked = check_positive({NamedEstimate{"the loop's performance", performance}}); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  return combined([](double roof, double reached) { return std::max(1.0, roof / reached); }, rising(height),
                  falling(performance));
}

}  // namespace crosstalk::models::roofline
