// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/mansard.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "models/words.h"

namespace crosstalk::models::roofline {
namespace {

constexpr double most_retirement_roofs = 64;
constexpr double same_height = 1e-9;  // relative difference of formulas that only rounding tells apart

/// The bound of each figure that a corner of their intervals takes.
using Bound = double (Estimate::*)() const;

/// The figures at one corner of their intervals. The formula rises with M, with N and with the ratio m / M, whichever
/// the others are (derived), but not with M while m stays. So corners fix the ratio, and take m from it.
HillFigures corner(const Hill& hill, const Estimate& other, double ratio, Bound bound) {
  const double most = (hill.memory_most.*bound)();
  return {most, most * std::min(ratio, 1.0), (other.*bound)()};
}

struct Range {
  double least, greatest;
};

/// The range of one hill over an interval of intensities. On each side of the ridge IPC is monotone in the intensity,
/// so its ends and the ridge have the extremes.
Result<Range> range_over(const HillFigures& hill, const Estimate& intensity, double retire_width) {
  const double ridge = hill.ridge();
  const bool spans_ridge = intensity.low() < ridge && ridge < intensity.high();
  Range range{retire_width, 0};
  for (const double at : {intensity.low(), intensity.high(), spans_ridge ? ridge : intensity.high()}) {
    const auto ipc = hill_ipc(hill, at, retire_width);
    if (!ipc) {
      return tl::unexpected<Error>(ipc.error());
    }
    range = {std::min(range.least, *ipc), std::max(range.greatest, *ipc)};
  }
  return range;
}

Result<Estimate> ipc_of(const Hill& hill, const Estimate& other, const Estimate& intensity, double retire_width) {
  const auto& [level, most, at_ridge] = hill;
  const auto least =
      range_over(corner(hill, other, at_ridge.low() / most.high(), &Estimate::low), intensity, retire_width);
  const auto greatest =
      range_over(corner(hill, other, at_ridge.high() / most.low(), &Estimate::high), intensity, retire_width);
  const auto value =
      hill_ipc(corner(hill, other, at_ridge.value() / most.value(), &Estimate::value), intensity.value(), retire_width);
  if (!least || !greatest || !value) {
    return tl::unexpected<Error>(!least ? least.error() : !greatest ? greatest.error() : value.error());
  }
  const Basis basis = std::max({most.basis(), at_ridge.basis(), other.basis(), intensity.basis()});
  return Estimate::of(*value, std::min(least->least, *value), std::max(greatest->greatest, *value), basis);
}

Result<void> check_levels(const std::vector<Hill>& hills) {
  for (std::size_t i = 0; i < hills.size(); ++i) {
    const std::string level = level_in_words(hills[i].level);
    if (i > 0 && hills[i - 1].level == hills[i].level) {
      return fail(ErrorCode::invalid_argument, "two hills are of " + level + "; give one for each level");
    }
    auto checked =
        check_positive({NamedEstimate{"the most memory instructions a cycle of " + level, hills[i].memory_most},
                        {"the memory instructions a cycle at the ridge of " + level, hills[i].memory_at_ridge}});
    if (checked && surely_below(hills[i].memory_most, hills[i].memory_at_ridge)) {
      checked = fail(ErrorCode::invalid_argument,
                     level + " sustains more memory instructions at the ridge than at most; measure it again");
    }
    if (!checked) {
      return checked;
    }
  }
  return {};
}

bool at_horizontal(const Verdict& verdict) {
  return std::any_of(verdict.reached.begin(), verdict.reached.end(),
                     [](const Intersection& roof) { return roof.kind == RoofKind::retirement; });
}

void advise_on(Verdict& verdict, bool scalar) {
  if (scalar && at_horizontal(verdict)) {
    verdict.advice.push_back(Advice::vectorise);
  }
  if (verdict.region != Region::compute) {
    verdict.advice.insert(verdict.advice.end(), {Advice::access_pattern, Advice::locality});
  }
  if (verdict.region == Region::mixed || verdict.region == Region::undecided) {
    verdict.advice.push_back(Advice::hide_latency);
  }
  const bool said = std::find(verdict.advice.begin(), verdict.advice.end(), Advice::vectorise) != verdict.advice.end();
  if (verdict.region != Region::memory && !said) {
    verdict.advice.push_back(Advice::vectorise);
  }
}

}  // namespace

Mansard::Mansard(std::vector<Hill> hills, const Estimate& other, double retire_width, const Estimate& near_ridge,
                 const Estimate& far_ridge)
    : hills_(std::move(hills)),
      other_(other),
      retire_width_(retire_width),
      near_ridge_(near_ridge),
      far_ridge_(far_ridge) {}

Result<Mansard> Mansard::of(std::vector<Hill> hills, const Estimate& other, double retire_width) {
  if (hills.empty()) {
    return fail(ErrorCode::not_found, "no level's memory instructions a cycle are known; run crosstalk calibrate");
  }
  std::stable_sort(hills.begin(), hills.end(), [](const Hill& a, const Hill& b) { return a.level < b.level; });
  auto checked = check_levels(hills);
  checked = checked ? check_positive({{"the retirement width", retire_width}}) : checked;
  checked = checked ? check_positive({NamedEstimate{"the number of non-memory instructions a cycle", other}}) : checked;
  if (!checked) {
    return tl::unexpected<Error>(checked.error());
  }
  // The nearest level is at least as fast as any other, also where it was measured slower.
  Estimate fastest = hills.front().memory_most;
  for (const Hill& hill : hills) {
    fastest = greatest(fastest, hill.memory_most);
  }
  const auto near_ridge = quotient(other, fastest, "the most memory instructions a cycle");
  const auto far_ridge = quotient(other, hills.back().memory_most, "the most memory instructions a cycle");
  if (!near_ridge || !far_ridge) {
    return tl::unexpected<Error>((near_ridge ? far_ridge : near_ridge).error());
  }
  return Mansard(std::move(hills), other, retire_width, *near_ridge, *far_ridge);
}

std::vector<Roof> Mansard::retirement_roofs() const {
  std::vector<Roof> roofs;
  const auto add = [&roofs](double slots) {
    if (const auto height = Estimate::exact(slots, Basis::modelled)) {
      roofs.push_back({.name = figure(slots) + "RS", .kind = RoofKind::retirement, .height = *height});
    }
  };
  for (double slots = 1; slots < std::min(retire_width_, most_retirement_roofs); ++slots) {
    add(slots);
  }
  add(retire_width_);
  return roofs;
}

Result<Estimate> Mansard::ipc(Level level, const Estimate& intensity) const {
  auto hill = std::find_if(hills_.begin(), hills_.end(), [level](const Hill& one) { return one.level == level; });
  if (hill == hills_.end()) {
    return fail(ErrorCode::not_found,
                std::string("no hill of ") + level_in_words(level) + " is known; run crosstalk calibrate");
  }
  auto highest = ipc_of(*hill, other_, intensity, retire_width_);
  while (highest && ++hill != hills_.end()) {
    const auto farther = ipc_of(*hill, other_, intensity, retire_width_);
    highest = farther ? Result<Estimate>(greatest(*highest, *farther)) : farther;
  }
  return highest;
}

Region Mansard::region(const Estimate& intensity) const { return region_between(intensity, near_ridge_, far_ridge_); }

Result<std::vector<Intersection>> Mansard::intersections(const Estimate& intensity) const {
  std::vector<Intersection> found;
  double highest = 0, nearer = 0;
  for (const Hill& hill : hills_) {
    const auto own = ipc_of(hill, other_, intensity, retire_width_);
    const auto height = ipc(hill.level, intensity);
    if (!own || !height) {
      return tl::unexpected<Error>((own ? height : own).error());
    }
    highest = std::max(highest, height->value());
    const bool right_of_ridge = intensity.value() * hill.memory_most.value() >= other_.value();
    const bool like_nearer = right_of_ridge && std::abs(own->value() - nearer) <= same_height * nearer;
    nearer = own->value();
    if (height->value() < retire_width_ && !like_nearer) {
      found.push_back(
          {.name = level_in_words(hill.level), .height = *height, .level = hill.level, .kind = RoofKind::bandwidth});
    }
  }
  for (Roof& roof : retirement_roofs()) {
    if (roof.height.value() <= highest) {
      found.push_back({.name = std::move(roof.name), .height = roof.height, .kind = roof.kind});
    }
  }
  return found;
}

Result<Verdict> Mansard::judge(const MansardPoint& point) const {
  auto found = intersections(point.intensity);
  if (!found) {
    return tl::unexpected<Error>(found.error());
  }
  Verdict verdict = verdict_among(region(point.intensity), std::move(*found), point.ipc);
  advise_on(verdict, point.scalar);
  return verdict;
}

}  // namespace crosstalk::models::roofline
