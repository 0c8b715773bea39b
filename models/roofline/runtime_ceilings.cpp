// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/runtime_ceilings.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/roofline/ceilings.h"

namespace crosstalk::models::roofline {
namespace {

Result<void> check_part(std::string_view name, const Estimate& part) { return check_share({name, part.high()}); }

/// The share of some of a loop's floating-point instructions, at most 1: the intervals of a part and of its whole may
/// overlap.
Result<Estimate> share_of(const Result<Estimate>& some, const Result<Estimate>& all) {
  auto share = quotient(some, all, "the number of floating-point instructions");
  if (share && share->low() > 1) {
    return fail(ErrorCode::invalid_argument, "more instructions of one kind are counted than of all kinds");
  }
  return share ? combined([](double part) { return std::min(part, 1.0); }, rising(*share)) : share;
}

Result<Estimate> multiply_add_part(const LoopPoint& point, MultiplyAdd hardware) {
  if (hardware == MultiplyAdd::separate_pipes) {
    if (!point.add_instructions || !point.multiply_instructions) {
      return point.add_instructions ? point.multiply_instructions : point.add_instructions;
    }
    return separate_pipes_part(*point.add_instructions, *point.multiply_instructions);
  }
  const auto share = share_of(point.fma_instructions, point.fp_instructions);
  return share ? fused_part(*share) : share;
}

Result<FeatureCost> cost_of(Feature feature, const Estimate& part, const Roof& peak) {
  auto ceiling = product(part, peak.height);
  auto cost = combined([](double share) { return std::max(1.0, 1 / share); }, falling(part));
  if (!ceiling || !cost) {
    return tl::unexpected<Error>((ceiling ? cost : ceiling).error());
  }
  return FeatureCost{feature, *ceiling, *cost};
}

struct Part {
  Feature feature;
  Estimate part;
};

/// The parts that are known; the reason of the first unknown one if none is.
Result<std::vector<Part>> known_parts(const LoopPoint& point, const Roof& peak, double lanes, MultiplyAdd hardware,
                                      const std::optional<Estimate>& ilp) {
  std::vector<Part> parts;
  const auto vectors = share_of(point.simd_instructions, point.fp_instructions);
  const auto simd = vectors ? simd_part(lanes, *vectors) : vectors;
  const auto balance = multiply_add_part(point, hardware);
  if (simd) {
    parts.push_back({Feature::vectors, *simd});
  }
  if (balance) {
    parts.push_back({Feature::multiply_add, *balance});
  }
  if (ilp) {
    auto part = quotient(*ilp, peak.height, peak.name);
    part = part ? combined([](double share) { return std::min(share, 1.0); }, rising(*part)) : part;
    if (part) {
      parts.push_back({Feature::independent_operations, *part});
    }
  }
  if (parts.empty()) {
    return tl::unexpected<Error>((simd ? balance : simd).error());
  }
  return parts;
}

Result<void> add_joint(std::vector<FeatureCost>& costs, const std::vector<Part>& parts, const Roof& peak) {
  std::vector<Estimate> factors;
  std::transform(parts.begin(), parts.end(), std::back_inserter(factors), [](const Part& part) { return part.part; });
  const auto joint = joint_part(factors);
  auto cost = joint ? cost_of(Feature::all, *joint, peak) : tl::unexpected<Error>(joint.error());
  if (!cost) {
    return tl::unexpected<Error>(cost.error());
  }
  costs.push_back(*cost);
  return {};
}

Result<void> check_evidence(const MemoryEvidence& evidence) {
  const std::array<std::pair<std::string_view, std::optional<double>>, 5> parts = {
      {{"the part of compulsory misses", evidence.compulsory},
       {"the part of capacity misses", evidence.capacity},
       {"the part of conflict misses", evidence.conflict},
       {"the balance of the memory controllers", evidence.controller_balance},
       {"the part of time with idle queues", evidence.idle_queues}}};
  for (const auto& [name, part] : parts) {
    if (auto checked = part ? check_share({name, *part}) : Result<void>(); !checked) {
      return checked;
    }
  }
  return {};
}

}  // namespace

Result<Estimate> simd_part(double lanes, const Estimate& vector_share) {
  auto checked = check_positive({{"the number of lanes", lanes}});
  if (checked && lanes < 1) {
    checked = fail(ErrorCode::invalid_argument, "the number of lanes is below 1; a scalar has 1");
  }
  checked = checked ? check_part("the vector part of the instructions", vector_share) : checked;
  if (!checked) {
    return tl::unexpected<Error>(checked.error());
  }
  return combined([lanes](double share) { return (1 + (lanes - 1) * share) / lanes; }, rising(vector_share));
}

Result<Estimate> separate_pipes_part(const Estimate& additions, const Estimate& multiplications) {
  if (std::max(additions.low(), multiplications.low()) == 0) {
    return fail(ErrorCode::not_found, "the loop may have neither additions nor multiplications");
  }
  const auto part = [](double a, double m) { return 0.5 + 0.5 * (std::min(a, m) / std::max(a, m)); };
  // The part depends on the ratio alone, which is 1 somewhere within the bounds if the intervals overlap.
  const double ends[] = {part(additions.low(), multiplications.high()), part(additions.high(), multiplications.low())};
  const double value = part(additions.value(), multiplications.value());
  const double high = overlap(additions, multiplications) ? 1 : std::max(ends[0], ends[1]);
  return Estimate::of(value, std::min({ends[0], ends[1], value}), std::max(high, value),
                      std::max(additions.basis(), multiplications.basis()));
}

Result<Estimate> fused_part(const Estimate& fused_share) {
  if (auto checked = check_part("the fused part of the instructions", fused_share); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  return combined([](double share) { return (1 + share) / 2; }, rising(fused_share));
}

Result<Estimate> joint_part(std::span<const Estimate> parts) {
  if (parts.empty()) {
    return fail(ErrorCode::not_found, "no part of the peak is known");
  }
  Result<Estimate> joint = Estimate::exact(1, Basis::assumed);
  for (const Estimate& part : parts) {
    if (auto checked = check_part("a part of the peak", part); !checked) {
      return tl::unexpected<Error>(checked.error());
    }
    joint = joint ? product(*joint, part) : joint;
  }
  return joint;
}

Result<Estimate> ilp_rate(const Estimate& flops, const Estimate& recurrence_cycles, const Estimate& issue_cycles,
                          const Estimate& hz) {
  auto rate = quotient(flops, greatest(recurrence_cycles, issue_cycles), "the number of cycles of an iteration");
  return product(rate, Result<Estimate>(hz));
}

Result<std::vector<FeatureCost>> feature_costs(const LoopPoint& point, const Roof& peak, double lanes,
                                               MultiplyAdd hardware, const std::optional<Estimate>& ilp) {
  if (auto checked = check_roof(peak, RoofKind::compute); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const auto parts = known_parts(point, peak, lanes, hardware, ilp);
  if (!parts) {
    return tl::unexpected<Error>(parts.error());
  }
  std::vector<FeatureCost> costs;
  for (const Part& part : *parts) {
    auto cost = cost_of(part.feature, part.part, peak);
    if (!cost) {
      return tl::unexpected<Error>(cost.error());
    }
    costs.push_back(*cost);
  }
  std::stable_sort(costs.begin(), costs.end(),
                   [](const FeatureCost& a, const FeatureCost& b) { return a.cost.value() > b.cost.value(); });
  if (auto added = costs.size() > 1 ? add_joint(costs, *parts, peak) : Result<void>(); !added) {
    return tl::unexpected<Error>(added.error());
  }
  return costs;
}

Result<Roof> controller_balance_ceiling(const Roof& bandwidth, std::span<const double> bytes_by_controller) {
  if (auto checked = check_roof(bandwidth, RoofKind::bandwidth); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const auto used = utilisation(bytes_by_controller);
  auto height = used ? scaled(bandwidth.height, *used / static_cast<double>(bytes_by_controller.size()))
                     : Result<Estimate>(fail(ErrorCode::not_found, "no memory controller's traffic is known"));
  if (!height) {
    return tl::unexpected<Error>(height.error());
  }
  Roof ceiling = bandwidth;
  ceiling.name = "measured controllers";
  ceiling.ceiling = Ceiling::affinity;
  ceiling.height = *height;
  return ceiling;
}

Result<std::vector<Advice>> memory_advice(const MemoryEvidence& evidence) {
  if (auto checked = check_evidence(evidence); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  std::vector<std::pair<double, Advice>> worth = {
      {evidence.capacity.value_or(0), Advice::block_for_cache},
      {evidence.conflict.value_or(0), Advice::pad_arrays},
      {1 - evidence.controller_balance.value_or(1), Advice::affinity},
      {evidence.idle_queues.value_or(0), Advice::prefetch},
  };
  std::stable_sort(worth.begin(), worth.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Advice> advice;
  for (const auto& [part, kind] : worth) {
    if (part >= worth_advice) {
      advice.push_back(kind);
    }
  }
  return advice;
}

}  // namespace crosstalk::models::roofline
