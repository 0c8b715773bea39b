// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/knee.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace crosstalk::collectors::calibration {
namespace {

constexpr double most_latencies = 1.6;  // that the fillers of a round may take
constexpr unsigned most_fillers_tried = 1600;

/// The place between two numbers of fillers at which the steps exceed `bound` for good. They ascend but for noise.
double crossing(std::span<const BufferTime> times, const std::vector<double>& steps, double bound) {
  std::size_t at = steps.size();
  while (at > 0 && steps[at - 1] > bound) {
    --at;
  }
  if (at == 0 || at == steps.size()) {
    return times[at == 0 ? 0 : at - 1].fillers;
  }
  const double before = steps[at - 1], after = steps[at];
  const double part = after > before ? (bound - before) / (after - before) : 0;
  return times[at - 1].fillers + part * (times[at].fillers - times[at - 1].fillers);
}

/// The part of the step from overlapping loads (0) to separate ones (1) that each time has done.
std::vector<double> steps_of(std::span<const BufferTime> times, double fillers_per_s) {
  std::vector<double> steps(times.size());
  double least = times.back().seconds;
  for (std::size_t i = times.size(); i-- > 0;) {
    least = std::min(least, times[i].seconds);
    steps[i] = least;
  }
  const double latency_s = steps.front();
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double filling_s = times[i].fillers / fillers_per_s;
    const double together = std::max(latency_s, 2 * filling_s), separate = 2 * std::max(latency_s, filling_s);
    steps[i] = separate > together ? (steps[i] - together) / (separate - together) : 0;
  }
  return steps;
}

}  // namespace

std::optional<Knee> find_knee(std::span<const BufferTime> times, double fillers_per_s) {
  constexpr std::size_t enough = 8, last = 3;
  constexpr double done = 0.7;  // of the step: some work overlaps with the second load in any case
  if (times.size() < enough || !(fillers_per_s > 0)) {
    return std::nullopt;
  }
  const std::vector<double> steps = steps_of(times, fillers_per_s);
  if (*std::min_element(steps.end() - last, steps.end()) < done) {
    return std::nullopt;
  }
  const auto at = [&](double part) { return crossing(times, steps, part); };
  Knee knee{at(0.5), at(0.25), at(0.75)};
  knee.low = std::min(knee.low, knee.fillers);
  knee.high = std::max(knee.high, knee.fillers);
  return knee;
}

unsigned most_fillers(double latency_s, double fillers_per_s) {
  return static_cast<unsigned>(
      std::clamp(most_latencies / 2 * latency_s * fillers_per_s, 0.0, double{most_fillers_tried}));
}

}  // namespace crosstalk::collectors::calibration
