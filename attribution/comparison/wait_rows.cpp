// SPDX-License-Identifier: Apache-2.0
#include "attribution/comparison/wait_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace crosstalk::attribution::comparison {
namespace {

constexpr double least_of_waits = 0.01;  // of the CPU time, for a change to be told

/// Seconds by class; unknown if the profile did not measure waits.
std::array<Figure, profile::wait_classes> measured(const Analysis& analysis) {
  std::array<Figure, profile::wait_classes> figures;
  if (analysis.session.config.measure_waits == 0) {
    return figures;
  }
  figures.fill(exactly(0));
  for (const WaitPlace& place : analysis.wait_places) {
    if (place.kind != profile::WaitKind::all) {
      Figure& figure = figures.at(static_cast<std::size_t>(profile::class_of(place.kind)));
      figure = sum_of(figure, place.sampled ? Figure{place.waited_s, place.waited_ci95} : exactly(place.waited_s));
    }
  }
  return figures;
}

Verdict judge(const WaitRow& row, const Comparison& c) {
  if (!row.change.ci95 || c.unit == Unit::share) {
    return Verdict::unknown;  // other work has other waits
  }
  const int direction = direction_of(row.change);
  const double least_s = least_of_waits * std::max(c.before_cpu_s, c.after_cpu_s);
  if (direction == 0 || std::fabs(row.change.value.value_or(0)) < least_s) {
    return Verdict::same;
  }
  // A thread that waits for work loses nothing by it.
  const bool idle = row.what == profile::WaitClass::condition;
  return direction < 0 ? (idle ? Verdict::less : Verdict::better) : idle ? Verdict::more : Verdict::worse;
}

}  // namespace

std::vector<WaitRow> wait_rows(const Analysis& before, const Analysis& after, const Comparison& result) {
  const auto was = measured(before);
  const auto is = measured(after);
  std::vector<WaitRow> rows;
  for (std::size_t i = 0; i < profile::wait_classes; ++i) {
    WaitRow row{static_cast<profile::WaitClass>(i), was.at(i), is.at(i), {}, Verdict::unknown};
    row.change = change_of(row.before, row.after, result.run_to_run);
    row.verdict = judge(row, result);
    if (row.before.value.value_or(0) > 0 || row.after.value.value_or(0) > 0) {
      rows.push_back(row);
    }
  }
  return rows;
}

const char* waits_in_words(profile::WaitClass what) {
  return what == profile::WaitClass::lock      ? "waits for locks"
         : what == profile::WaitClass::barrier ? "waits at barriers"
                                               : "waits for conditions and semaphores";
}

}  // namespace crosstalk::attribution::comparison
