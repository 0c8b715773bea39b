// SPDX-License-Identifier: Apache-2.0
// The speed of a loop from steps between samples, and whether the steps can be trusted.
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <vector>

#include "attribution/loops/loop_rates.h"
#include "models/quantiles.h"

namespace crosstalk::attribution {
namespace {

constexpr std::size_t least_to_judge = 8;  // for a verdict
constexpr double least_unseen = 0.05;      // of a loop's time: begins and ends of visits always are

struct Line {
  double slope = 0, error = 0;  // error: standard error of the slope; infinite when nothing tells
};

/// The slope of iterations over small differences between intervals: least squares within groups of intervals of nearly
/// equal length. Leaves out intervals that differ from their group's length by more than 2 %, because they were
/// disturbed.
Line slope_within_groups(std::span<const LoopStep> steps, double typical_s) {
  struct Group {
    double n = 0, x = 0, y = 0;
  };
  constexpr double near = 0.02;
  const auto group_of = [&](const LoopStep& step) { return std::max(1L, std::lround(step.cpu_s / typical_s)); };
  const auto counts = [&](const LoopStep& step) {
    return step.same && std::abs(step.cpu_s / (static_cast<double>(group_of(step)) * typical_s) - 1) <= near;
  };
  std::map<long, Group> groups;
  for (const LoopStep& step : steps) {
    if (counts(step)) {
      Group& group = groups[group_of(step)];
      group.n += 1, group.x += step.cpu_s, group.y += step.iterations;
    }
  }
  double n = 0, xx = 0, xy = 0, yy = 0;
  for (const LoopStep& step : steps) {
    if (!counts(step)) {
      continue;
    }
    const Group& group = groups[group_of(step)];
    const double x = step.cpu_s - group.x / group.n;
    const double y = step.iterations - group.y / group.n;
    n += 1, xx += x * x, xy += x * y, yy += y * y;
  }
  const double degrees = n - static_cast<double>(groups.size()) - 1;
  constexpr double clock_s = 1e-7;  // two readings of a clock differ by so much for no reason
  if (degrees < 2 || xx <= n * clock_s * clock_s) {
    return {0, INFINITY};
  }
  const double slope = xy / xx;
  return {slope, std::sqrt(std::max(0.0, yy - slope * xy) / degrees / xx)};
}

std::vector<LoopStep> steps_of_one_visit(std::span<const LoopStep> steps) {
  std::vector<LoopStep> same;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(same), [](const LoopStep& s) { return s.same; });
  return same;
}

double median_interval(std::vector<LoopStep> steps) {
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end(),
                   [](const LoopStep& a, const LoopStep& b) { return a.cpu_s < b.cpu_s; });
  return middle->cpu_s;
}

}  // namespace

Verdict judge(std::span<const LoopStep> steps) {
  const std::vector<LoopStep> same = steps_of_one_visit(steps);
  const auto all = static_cast<double>(steps.size());
  const double ended = all - static_cast<double>(same.size());
  if (steps.size() < least_to_judge) {
    return Verdict::too_few;
  }
  if (ended > most_ended * all) {
    return Verdict::too_short;
  }
  double cpu_s = 0;
  double iterations = 0;
  for (const LoopStep& step : same) {
    cpu_s += step.cpu_s, iterations += step.iterations;
  }
  if (cpu_s <= 0 || iterations <= 0) {
    return Verdict::too_short;
  }
  // Visits of length V that fit k times into an interval T look like progress of T - kV, and end in a part f = (T - kV)
  // / V of the intervals. Then the true rate is (k + f) / f >= (1 + f) / f times the found one.
  const double share = std::min((ended + 2) / all, most_ended);  // f, at most
  const double limit = 0.5 * (1 + share) / share * iterations / cpu_s;
  const Line line = slope_within_groups(same, median_interval(same));
  // The slope must be near the rate rather than near the limit, with an error that separates the two. If the clock
  // itself is disturbed, the slope falls towards zero, and is no evidence. But visits whose ends are as rare as for
  // `many` cannot keep to the clock that well.
  constexpr double many = 10;
  const double found = iterations / cpu_s;
  const bool undisturbed = line.slope + 4 * line.error > found / 2 || limit > many * found;
  const bool tells = 4 * line.error < limit - found && undisturbed;
  if (tells && line.slope + 2 * line.error < limit) {
    return Verdict::sound;
  }
  return line.slope - 2 * line.error > limit ? Verdict::too_short : Verdict::ambiguous;
}

namespace {

struct SeenVisit {
  double cpu_s = 0, iterations = 0, steps = 0, residual = 0;
  bool whole = false;  // iterations are rounded to whole ones
  // A visit is seen from its first sample to its last, on average a step less than its length. Without this weight,
  // slow visits, which last longer, would count too much.
  [[nodiscard]] double weight() const { return 1 + 1 / steps; }
};
using SeenVisits = std::unordered_map<std::uint32_t, SeenVisit>;

SeenVisits visits_of(std::span<const LoopStep> same) {
  SeenVisits visits;
  for (const LoopStep& step : same) {
    SeenVisit& visit = visits[step.visit];
    visit.cpu_s += step.cpu_s, visit.iterations += step.iterations, visit.steps += 1;
    visit.whole |= !step.with_parts;
  }
  return visits;
}

struct Spread {
  double variance = 0, units = 0;  // of the sum of residuals, and of how many units it was found
};

/// Residuals by step, or by visit if they are alike within one.
Spread spread_of(std::span<const LoopStep> same, double speed, SeenVisits& visits) {
  double by_step = 0;
  for (const LoopStep& step : same) {
    SeenVisit& visit = visits[step.visit];
    const double residual = visit.weight() * (step.iterations - speed * step.cpu_s);
    by_step += residual * residual;
    visit.residual += residual;
  }
  double by_visit = 0;
  for (const auto& [id, visit] : visits) {
    by_visit += visit.residual * visit.residual;
  }
  const auto n = static_cast<double>(same.size());
  const auto count = static_cast<double>(visits.size());
  by_step *= n / (n - 1);
  by_visit *= count / std::max(count - 1, 1.0);
  return visits.size() > least_steps && by_visit > by_step ? Spread{by_visit, count} : Spread{by_step, n};
}

}  // namespace

double part_in_callees(std::span<const LoopStep> steps) {
  const bool any = std::any_of(steps.begin(), steps.end(), [](const LoopStep& step) { return step.same; });
  double total_s = 0;
  double callees_s = 0;
  for (const LoopStep& step : steps) {
    if (step.same || !any) {
      total_s += step.cpu_s, callees_s += step.callees_s;
    }
  }
  return total_s > 0 ? std::clamp(callees_s / total_s, 0.0, 1.0) : 0;
}

std::optional<Speed> speed_of(std::span<const LoopStep> steps, double loop_cpu_s) {
  const std::vector<LoopStep> same = steps_of_one_visit(steps);
  SeenVisits visits = visits_of(same);
  double cpu_s = 0;
  double iterations = 0;
  for (const auto& [id, visit] : visits) {
    cpu_s += visit.weight() * visit.cpu_s, iterations += visit.weight() * visit.iterations;
  }
  if (same.size() < least_steps || cpu_s <= 0 || iterations <= 0) {
    return std::nullopt;
  }
  double seen_s = 0;
  for (const LoopStep& step : same) {
    seen_s += step.cpu_s - step.callees_s;
  }
  const double unseen = loop_cpu_s > 0 ? std::clamp(1 - seen_s / loop_cpu_s, least_unseen, 1.0) : 1.0;
  const double speed = iterations / cpu_s;
  const Spread spread = spread_of(same, speed, visits);
  // A counter stands at whole iterations: each end of a visit is off by at most half of one, evenly (variance 1/12).
  const auto rounded = std::count_if(visits.begin(), visits.end(), [](const auto& v) { return v.second.whole; });
  const double rounding = static_cast<double>(rounded) * 2 / 12;
  const double half = models::student_95(spread.units - 1) * std::sqrt(spread.variance * unseen + rounding) / cpu_s;
  return Speed{speed, {std::max(0.0, speed - half), speed + half}, same.size()};
}

}  // namespace crosstalk::attribution
