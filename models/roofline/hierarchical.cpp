// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/hierarchical.h"

#include <algorithm>
#include <optional>

namespace crosstalk::models::roofline {
namespace {

/// min(flops / bytes B, F), which stays finite as the bytes go to 0.
Result<Estimate> level_bound(const Estimate& flops, const Result<Estimate>& bytes, const Roof& bandwidth,
                             const Roof& compute) {
  if (!bytes) {
    return bytes;
  }
  const auto bound = [](double done, double moved, double rate, double peak) {
    return moved > 0 ? std::min(done / moved * rate, peak) : peak;
  };
  return combined(bound, rising(flops), falling(*bytes), rising(bandwidth.height), rising(compute.height));
}

/// Index of the least bound among the points and, as one past them, the compute roof.
std::size_t least_index(const std::vector<LevelPoint>& points, const Roof& compute) {
  std::size_t least = points.size();
  double lowest = compute.height.value();
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].bound && points[i].bound->value() < lowest) {
      least = i;
      lowest = points[i].bound->value();
    }
  }
  return least;
}

/// True if another bound may be the least one. A level at the compute roof is not another bound than it.
bool rivalled(const std::vector<LevelPoint>& points, const Roof& compute, std::size_t least) {
  const Estimate& lowest = least < points.size() ? *points[least].bound : compute.height;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool at_peak = points[i].bound && *points[i].bound == on_basis(compute.height, points[i].bound->basis());
    if (i != least && points[i].bound && !at_peak && overlap(*points[i].bound, lowest)) {
      return true;
    }
  }
  return least < points.size() && overlap(lowest, compute.height);
}

Result<Estimate> gain_to(const Result<Estimate>& bound, const Result<Estimate>& reached) {
  if (!bound || !reached) {
    return bound ? reached : bound;
  }
  if (surely_below(*bound, *reached)) {
    return fail(ErrorCode::not_found,
                "the loop is faster than its bound, so a roof is too low or its traffic too high; "
                "calibrate again while the machine is idle");
  }
  return gain_at(*bound, *reached);
}

void decide(HierarchicalVerdict& verdict, const Roof& compute) {
  const std::size_t least = least_index(verdict.points, compute);
  const bool slanted = least < verdict.points.size();
  verdict.bound = slanted ? verdict.points[least].bound : Result<Estimate>(compute.height);
  const auto unknown =
      std::find_if(verdict.points.begin(), verdict.points.end(), [](const auto& point) { return !point.bound; });
  if (unknown != verdict.points.end()) {
    verdict.undecided =
        std::string("the traffic from ") + level_in_words(unknown->level) + " is not known and may limit more";
  } else if (rivalled(verdict.points, compute, least)) {
    verdict.undecided = "the intervals of the lowest bounds overlap";
  } else {
    verdict.region = slanted ? Region::memory : Region::compute;
    verdict.bottleneck = slanted ? std::optional(verdict.points[least].level) : std::nullopt;
  }
}

void advise_on(HierarchicalVerdict& verdict) {
  if (verdict.region != Region::compute) {
    verdict.advice.insert(verdict.advice.end(), {Advice::locality, Advice::access_pattern, Advice::raise_intensity});
  }
  if (verdict.region != Region::memory) {
    verdict.advice.insert(verdict.advice.end(), {Advice::vectorise, Advice::thread});
  }
}

}  // namespace

Result<HierarchicalVerdict> hierarchical_verdict(const std::vector<Roof>& bandwidths, const Roof& compute,
                                                 const LoopPoint& point) {
  const auto levels = levels_in_order(bandwidths, compute);
  if (!levels) {
    return tl::unexpected<Error>(levels.error());
  }
  if (!point.flops) {
    return tl::unexpected<Error>(point.flops.error());
  }
  if (auto checked = check_positive({NamedEstimate{"the number of operations", *point.flops}}); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  HierarchicalVerdict verdict;
  for (const Roof& roof : *levels) {
    verdict.points.push_back({*roof.level, intensity(point, *roof.level),
                              level_bound(*point.flops, point.bytes(*roof.level), roof, compute)});
  }
  if (std::none_of(verdict.points.begin(), verdict.points.end(), [](const auto& each) { return each.bound; })) {
    verdict.undecided = "no level's traffic is known";
    return verdict;
  }
  decide(verdict, compute);
  verdict.gain_bound = gain_to(verdict.bound, performance(point));
  advise_on(verdict);
  return verdict;
}

}  // namespace crosstalk::models::roofline
