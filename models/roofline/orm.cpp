// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/orm.h"

#include <algorithm>
#include <string>

namespace crosstalk::models::roofline {
namespace {

bool is_lower(const Roof& a, const Roof& b) { return a.height.value() < b.height.value(); }

/// The highest of roofs of one kind. Refuses roofs of another kind.
Result<const Roof*> highest(std::span<const Roof> roofs, RoofKind kind) {
  if (roofs.empty()) {
    return fail(ErrorCode::not_found, std::string(kind == RoofKind::bandwidth ? "no bandwidth" : "no compute") +
                                          " roof is known; run crosstalk calibrate");
  }
  for (const Roof& roof : roofs) {
    if (auto checked = check_roof(roof, kind); !checked) {
      return tl::unexpected<Error>(checked.error());
    }
  }
  return &*std::max_element(roofs.begin(), roofs.end(), is_lower);
}

struct Roofline {
  const Roof& bandwidth;
  const Roof& compute;
};

Result<std::vector<Intersection>> intersections_of(std::span<const Roof> bandwidths, std::span<const Roof> compute,
                                                   const Roofline& roofline, const Estimate& intensity) {
  auto top = attainable(roofline.bandwidth, roofline.compute, intensity);
  if (!top) {
    return tl::unexpected<Error>(top.error());
  }
  const bool slanted = top->value() < roofline.compute.height.value();
  const Roof& roof = slanted ? roofline.bandwidth : roofline.compute;
  std::vector<Intersection> found = {{roof.name, *top, roof.level, roof.ceiling, roof.kind}};
  const auto add_ceiling = [&](const Roof& ceiling, const Estimate& height) {
    if (height.value() < top->value()) {
      found.push_back({ceiling.name, height, ceiling.level, ceiling.ceiling, ceiling.kind});
    }
  };
  for (const Roof& ceiling : bandwidths) {
    auto height = attainable(ceiling, roofline.compute, intensity);
    if (!height) {
      return tl::unexpected<Error>(height.error());
    }
    add_ceiling(ceiling, *height);
  }
  for (const Roof& ceiling : compute) {
    add_ceiling(ceiling, ceiling.height);
  }
  return found;
}

void advise(Verdict& verdict) {
  if (verdict.above && verdict.above->ceiling) {
    verdict.advice.push_back(advice_to_reach(*verdict.above->ceiling));
  }
  if (verdict.region != Region::compute) {
    verdict.advice.push_back(Advice::raise_intensity);
  }
}

}  // namespace

Result<Estimate> orm_bound(const Estimate& intensity, const Roof& bandwidth, const Roof& in_core,
                           const std::optional<Roof>& mix) {
  auto bound = attainable(bandwidth, in_core, intensity);
  if (!bound || !mix) {
    return bound;
  }
  if (auto checked = check_roof(*mix, RoofKind::compute); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  return least(*bound, mix->height);
}

Result<Verdict> orm_verdict(std::span<const Roof> bandwidths, std::span<const Roof> compute, const Estimate& intensity,
                            const Estimate& performance) {
  if (auto checked = check_positive({NamedEstimate{"the loop's intensity", intensity}}); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const auto bandwidth = highest(bandwidths, RoofKind::bandwidth);
  const auto peak = highest(compute, RoofKind::compute);
  if (!bandwidth || !peak) {
    return tl::unexpected<Error>((bandwidth ? peak : bandwidth).error());
  }
  const auto at = ridge(**bandwidth, **peak);
  auto found = intersections_of(bandwidths, compute, {**bandwidth, **peak}, intensity);
  if (!at || !found) {
    return tl::unexpected<Error>(at ? found.error() : at.error());
  }
  Verdict verdict = verdict_among(region_between(intensity, *at, *at), std::move(*found), performance);
  advise(verdict);
  return verdict;
}

}  // namespace crosstalk::models::roofline
