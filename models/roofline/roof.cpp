// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/roof.h"

#include <algorithm>

namespace crosstalk::models::roofline {
namespace {

template <class Value>
bool fits(const std::optional<Value>& of_roof, const std::optional<Value>& of_loop) {
  return !of_roof || of_roof == of_loop;
}

bool alike(const Roof& a, const Roof& b) {
  return a.kind == b.kind && a.level == b.level && a.width == b.width && a.operation == b.operation &&
         a.ceiling == b.ceiling;
}

const char* kind_in_words(RoofKind kind) {
  return kind == RoofKind::bandwidth ? "a bandwidth roof"
         : kind == RoofKind::compute ? "a compute roof"
                                     : "a retirement roof";
}

Result<Estimate> interpolated(const Roof& fewer, const Roof& more, std::uint32_t threads) {
  const double part = static_cast<double>(threads - fewer.threads) / (more.threads - fewer.threads);
  const auto linear = combined([part](double a, double b) { return a * (1 - part) + b * part; }, rising(fewer.height),
                               rising(more.height));
  const auto scaling = scaled(fewer.height, static_cast<double>(threads) / fewer.threads);
  if (!linear || !scaling) {
    return linear ? scaling : linear;
  }
  const double most = std::max(linear->high(), std::min(scaling->high(), more.height.high()));
  return Estimate::of(linear->value(), linear->low(), most, linear->basis());
}

Result<void> check_beside(const Roof& bandwidth, const Roof& compute) {
  if (!bandwidth.level) {
    return fail(ErrorCode::invalid_argument, "the bandwidth roof " + bandwidth.name + " names no level");
  }
  if (bandwidth.threads != compute.threads) {
    return fail(ErrorCode::invalid_argument, "the roof " + bandwidth.name + " is for " +
                                                 std::to_string(bandwidth.threads) + " threads, " + compute.name +
                                                 " for " + std::to_string(compute.threads) +
                                                 "; compare roofs of the same number of threads");
  }
  return {};
}

}  // namespace

const char* level_in_words(Level level) {
  static constexpr std::array<const char*, 4> names = {"L1D", "L2", "L3", "memory"};
  return names[static_cast<std::size_t>(level)];
}

bool comparable(const Roof& roof, const Setting& setting) {
  return roof.threads == setting.threads && fits(roof.width, setting.width) && fits(roof.operation, setting.operation);
}

std::vector<Roof> comparable_roofs(std::span<const Roof> roofs, const Setting& setting) {
  std::vector<Roof> chosen;
  std::copy_if(roofs.begin(), roofs.end(), std::back_inserter(chosen),
               [&](const Roof& roof) { return comparable(roof, setting); });
  return chosen;
}

Result<Roof> at_threads(const Roof& fewer, const Roof& more, std::uint32_t threads) {
  if (!alike(fewer, more)) {
    return fail(ErrorCode::invalid_argument, "the roofs " + fewer.name + " and " + more.name +
                                                 " differ in more than their threads; interpolate like roofs");
  }
  if (fewer.threads > threads || threads > more.threads || fewer.threads == 0) {
    return fail(ErrorCode::invalid_argument, "the roof " + fewer.name + " was measured with " +
                                                 std::to_string(fewer.threads) + " to " + std::to_string(more.threads) +
                                                 " threads, not with " + std::to_string(threads) +
                                                 "; calibrate with that many");
  }
  if (threads == fewer.threads || threads == more.threads) {
    return threads == fewer.threads ? fewer : more;
  }
  auto height = interpolated(fewer, more, threads);
  if (!height) {
    return tl::unexpected<Error>(height.error());
  }
  Roof roof = fewer;
  roof.threads = threads;
  roof.height = on_basis(*height, Basis::modelled);
  return roof;
}

Result<Estimate> ridge(const Roof& bandwidth, const Roof& compute) {
  if (auto checked = check_roof(bandwidth, RoofKind::bandwidth); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  if (auto checked = check_roof(compute, RoofKind::compute); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  return quotient(compute.height, bandwidth.height, bandwidth.name);
}

Result<Estimate> attainable(const Roof& bandwidth, const Roof& compute, const Estimate& intensity) {
  if (auto checked = ridge(bandwidth, compute); !checked) {
    return checked;
  }
  return combined([](double rate, double ai, double peak) { return std::min(rate * ai, peak); },
                  rising(bandwidth.height), rising(intensity), rising(compute.height));
}

Result<void> check_roof(const Roof& roof, RoofKind kind) {
  if (roof.kind != kind) {
    return fail(ErrorCode::invalid_argument, "the roof " + roof.name + " is " + kind_in_words(roof.kind) +
                                                 " where the model needs " + kind_in_words(kind));
  }
  return check_positive({NamedEstimate{"the roof " + roof.name, roof.height}});
}

Result<std::vector<Roof>> levels_in_order(std::vector<Roof> bandwidths, const Roof& compute) {
  if (bandwidths.empty()) {
    return fail(ErrorCode::not_found, "no bandwidth roof is known; run crosstalk calibrate");
  }
  if (auto checked = check_roof(compute, RoofKind::compute); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  for (const Roof& roof : bandwidths) {
    auto checked = check_roof(roof, RoofKind::bandwidth);
    checked = checked ? check_beside(roof, compute) : checked;
    if (!checked) {
      return tl::unexpected<Error>(checked.error());
    }
  }
  std::stable_sort(bandwidths.begin(), bandwidths.end(),
                   [](const Roof& a, const Roof& b) { return *a.level < *b.level; });
  for (std::size_t i = 1; i < bandwidths.size(); ++i) {
    if (bandwidths[i - 1].level == bandwidths[i].level) {
      return fail(ErrorCode::invalid_argument, "two bandwidth roofs are of " +
                                                   std::string(level_in_words(*bandwidths[i].level)) +
                                                   "; give one for each level");
    }
  }
  return bandwidths;
}

}  // namespace crosstalk::models::roofline
