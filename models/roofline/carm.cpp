// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/carm.h"

#include <algorithm>

namespace crosstalk::models::roofline {
namespace {

void raise_nearer_levels(std::vector<Roof>& bandwidths) {
  for (std::size_t i = bandwidths.size(); i-- > 1;) {
    const Estimate raised = greatest(bandwidths[i - 1].height, bandwidths[i].height);
    if (raised != on_basis(bandwidths[i - 1].height, raised.basis())) {
      bandwidths[i - 1].height = on_basis(raised, Basis::modelled);
    }
  }
}

Result<std::vector<Intersection>> intersections_of(const std::vector<Roof>& bandwidths, const Roof& compute,
                                                   const Estimate& intensity) {
  std::vector<Intersection> found;
  for (const Roof& roof : bandwidths) {
    auto height = attainable(roof, compute, intensity);
    if (!height) {
      return tl::unexpected<Error>(height.error());
    }
    if (height->value() < compute.height.value()) {
      found.push_back({roof.name, *height, roof.level, roof.ceiling, roof.kind});
    }
  }
  // The compute roof begins at the nearest level's ridge: no level serves a loop to the left of it so fast.
  if (found.size() < bandwidths.size()) {
    found.push_back({compute.name, compute.height, {}, compute.ceiling, compute.kind});
  }
  return found;
}

}  // namespace

Carm::Carm(std::vector<Roof> bandwidths, Roof compute, Estimate near_ridge, Estimate far_ridge)
    : bandwidths_(std::move(bandwidths)),
      compute_(std::move(compute)),
      near_ridge_(near_ridge),
      far_ridge_(far_ridge) {}

Result<Carm> Carm::of(std::vector<Roof> bandwidths, Roof compute) {
  auto levels = levels_in_order(std::move(bandwidths), compute);
  if (!levels) {
    return tl::unexpected<Error>(levels.error());
  }
  raise_nearer_levels(*levels);
  auto near_ridge = ridge(levels->front(), compute);
  auto far_ridge = ridge(levels->back(), compute);
  if (!near_ridge || !far_ridge) {
    return tl::unexpected<Error>((near_ridge ? far_ridge : near_ridge).error());
  }
  return Carm(std::move(*levels), std::move(compute), *near_ridge, *far_ridge);
}

Result<Estimate> Carm::attainable(Level level, const Estimate& intensity) const {
  const auto roof = std::find_if(bandwidths_.begin(), bandwidths_.end(),
                                 [level](const Roof& bandwidth) { return bandwidth.level == level; });
  if (roof == bandwidths_.end()) {
    return fail(ErrorCode::not_found,
                "no roof of " + std::string(level_in_words(level)) + " is known; run crosstalk calibrate");
  }
  return roofline::attainable(*roof, compute_, intensity);
}

Region Carm::region(const Estimate& intensity) const { return region_between(intensity, near_ridge_, far_ridge_); }

Result<std::vector<Intersection>> Carm::intersections(const Estimate& intensity) const {
  return intersections_of(bandwidths_, compute_, intensity);
}

Result<Verdict> Carm::judge(const Estimate& intensity, const Estimate& performance) const {
  return judge_below(bandwidths_, compute_, intensity, performance);
}

Result<Verdict> judge_below(const std::vector<Roof>& bandwidths, const Roof& compute, const Estimate& intensity,
                            const Estimate& performance) {
  if (auto checked = check_positive({NamedEstimate{"the loop's intensity", intensity}}); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  auto found = intersections_of(bandwidths, compute, intensity);
  const auto near = ridge(bandwidths.front(), compute), far = ridge(bandwidths.back(), compute);
  if (!found || !near || !far) {
    return tl::unexpected<Error>(!found ? found.error() : (near ? far : near).error());
  }
  Verdict verdict = verdict_among(region_between(intensity, *near, *far), std::move(*found), performance);
  advise_by_region(verdict);
  return verdict;
}

Result<Estimate> least_time(const Estimate& bytes, const Estimate& flops, const Roof& bandwidth, const Roof& compute) {
  if (auto checked = ridge(bandwidth, compute); !checked) {
    return checked;
  }
  return combined(
      [](double moved, double rate, double done, double peak) { return std::max(moved / rate, done / peak); },
      rising(bytes), falling(bandwidth.height), rising(flops), falling(compute.height));
}

}  // namespace crosstalk::models::roofline
