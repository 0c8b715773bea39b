// SPDX-License-Identifier: Apache-2.0
// Places of loops that gather in the sparse cache-aware model.
#include <algorithm>
#include <utility>

#include "attribution/roofline/place.h"
#include "models/roofline/carm.h"

namespace crosstalk::attribution {
namespace {

using models::Level;
using models::roofline::Estimate;
using models::roofline::Roof;

/// The nearest level that holds what the loop streams: more than half of the streamed bytes come from there.
std::optional<Level> level_of_streams(const LoopWork& work) {
  const auto& body = work.figures().body;
  const double streamed = body ? body->streamed_bytes() : 0;
  for (const Level level : {Level::memory, Level::l3, Level::l2}) {
    const auto& bytes = work.point.bytes(level);
    if (!bytes) {
      return std::nullopt;
    }
    if (bytes->value() > streamed / 2) {
      return level;
    }
  }
  return Level::l1d;
}

std::optional<SparseBandPlace> band_of(const LoopWork& work, const models::Machine& machine, const Estimate& rate) {
  const auto level = level_of_streams(work);
  const auto band = level ? models::roofline::sparse_band(machine, *level, work.threads)
                          : Result<models::roofline::Band>(fail(ErrorCode::not_found, "its level is not known"));
  auto verdict = band ? models::roofline::judge_band(*band, rate) : tl::unexpected<Error>(band.error());
  return verdict ? std::optional(SparseBandPlace{*band, *std::move(verdict)}) : std::nullopt;
}

/// The roofs without those that others nearly equal: caches that serve the kernel equally fast are one roof.
std::vector<Roof> distinct(const std::vector<Roof>& roofs) {
  constexpr double alike = 0.04;
  std::vector<Roof> kept;
  for (const Roof& roof : roofs) {
    if (kept.empty() || roof.height.value() < (1 - alike) * kept.back().height.value()) {
      kept.push_back(roof);
    }
  }
  return kept;
}

}  // namespace

Result<RooflinePlace> sparse_place(const LoopWork& work, const models::Machine& machine) {
  const auto& body = work.figures().body;
  if (!body || !(body->indirect_elements > 0)) {
    return fail(ErrorCode::not_found, body ? "it loads nothing from an address that it loaded, so it is not sparse"
                                           : "it has loops inside it, or its code is not known");
  }
  const auto rate = rate_of(work);
  const auto intensity = models::roofline::intensity(work.point);
  auto compute = compute_roof_of(work, machine);
  const std::vector<Roof> roofs = distinct(models::roofline::sparse_roofs(machine, work.threads));
  if (!rate || !intensity || !compute || roofs.empty()) {
    return !rate        ? tl::unexpected<Error>(rate.error())
           : !intensity ? tl::unexpected<Error>(intensity.error())
           : !compute   ? tl::unexpected<Error>(compute.error())
                        : fail(ErrorCode::not_found,
                               "the sparse roofs are not in the calibration; crosstalk calibrate adds them");
  }
  auto verdict = intensity->low() > 0 ? models::roofline::judge_below(roofs, *compute, *intensity, *rate)
                                      : fail(ErrorCode::not_found, "its intensity may be 0");
  if (!verdict) {
    return tl::unexpected<Error>(verdict.error());
  }
  RooflinePlace place;
  place.points = {{std::nullopt, *intensity, *rate}};
  place.roofs = roofs;
  place.roofs.push_back(*std::move(compute));
  place.machine = models::roofline::requested_roofs(machine, work.accesses, work.threads);
  place.verdict = *std::move(verdict);
  place.band = band_of(work, machine, *rate);
  if (place.band) {
    const auto& advice = place.band->verdict.advice;
    place.verdict.advice.insert(place.verdict.advice.begin(), advice.begin(), advice.end());
  }
  return place;
}

}  // namespace crosstalk::attribution
