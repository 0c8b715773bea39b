// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/machine_roofs.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace crosstalk::models::roofline {
namespace {

// A machine's speed changes over time: kernels that a unit limits kept it busy for 99.9, 95 and 88 % of the peak of the
// same minute, and for 91, 82 and 76 % of the peak of an hour before (docs/accuracy.md, "Busy times").
constexpr double between_times = 0.1;

std::uint32_t whole(double threads) { return static_cast<std::uint32_t>(std::lround(std::max(threads, 1.0))); }

/// Absent: the peak is not known, or makes no sense.
std::optional<Estimate> estimate_of(const Peak& peak) {
  if (!peak.effective) {
    return std::nullopt;
  }
  const double spread = std::clamp(std::max(peak.spread, between_times), 0.0, 1.0);
  auto estimate =
      Estimate::of(*peak.effective, *peak.effective * (1 - spread), *peak.effective * (1 + spread), Basis::calibrated);
  return estimate && estimate->value() > 0 ? std::optional(*estimate) : std::nullopt;
}

std::string width_in_words(Width width) {
  static constexpr std::array<const char*, 4> words = {"scalar", "SSE", "AVX2", "AVX-512"};
  return words[static_cast<std::size_t>(width)];
}

}  // namespace

std::vector<Roof> load_roofs(const Machine& machine, double threads) {
  std::vector<Roof> roofs;
  const std::uint32_t cores = cores_of(machine);
  for (const Level level : {Level::l1d, Level::l2, Level::l3, Level::memory}) {
    const bool shared = level == Level::l3 || level == Level::memory;
    const Peak peak =
        peak_of_thread(machine.bandwidth_of(level, Traffic::load, Scope::one_core),
                       machine.bandwidth_of(level, Traffic::load, Scope::all_cores), cores, threads, shared);
    if (const auto height = estimate_of(peak)) {
      roofs.push_back({.name = level_in_words(level),
                       .kind = RoofKind::bandwidth,
                       .level = level,
                       .threads = whole(threads),
                       .height = *height});
    }
  }
  return roofs;
}

Result<Roof> compute_roof(const Machine& machine, const FlopMix& mix, double threads) {
  const auto height = estimate_of(peak_of_mix(machine, mix, threads));
  if (!height) {
    return fail(ErrorCode::not_found, "the peak of its operations is not in the calibration");
  }
  return Roof{.name = "FP units", .kind = RoofKind::compute, .threads = whole(threads), .height = *height};
}

std::vector<Roof> width_roofs(const Machine& machine, Precision precision, double threads) {
  std::vector<Roof> roofs;
  for (const Width width : {Width::scalar, Width::sse, Width::avx2, Width::avx512}) {
    for (const Operation operation : {Operation::fma, Operation::add}) {
      FlopMix mix;
      mix.add(width, precision, operation, 1);
      if (const auto height = estimate_of(peak_of_mix(machine, mix, threads))) {
        roofs.push_back(Roof{width_in_words(width) + (operation == Operation::fma ? " FMA" : " add"),
                             RoofKind::compute,
                             {},
                             width,
                             operation,
                             {},
                             whole(threads),
                             *height});
        break;
      }
    }
  }
  return roofs;
}

}  // namespace crosstalk::models::roofline
