// SPDX-License-Identifier: Apache-2.0
#include "driver/live/window.h"

#include <utility>

#include "attribution/window_sum.h"
#include "base/units.h"
#include "driver/live/figures.h"

namespace crosstalk::driver::live {

void Window::add_begun(Interval interval) {
  add(std::move(interval));
  last_is_begun_ = true;
}

void Window::add(Interval interval) {
  if (std::exchange(last_is_begun_, false)) {
    intervals_.pop_back();
  }
  const std::uint64_t end_ns = interval.analysis.session.end_ns;
  intervals_.push_back(std::move(interval));
  // Intervals are a little longer or shorter than a refresh.
  const double reach_s = window_s_ - refresh_s_ / 2;
  const auto lies_before = [&](const Interval& one) {
    const std::uint64_t its_end_ns = one.analysis.session.end_ns;
    return its_end_ns < end_ns && static_cast<double>(end_ns - its_end_ns) / ns_per_s >= reach_s;
  };
  while (intervals_.size() > 1 && lies_before(intervals_.front())) {
    intervals_.pop_front();
  }
}

Snapshot Window::next() {
  std::vector<const attribution::Analysis*> analyses;
  Circumstances circumstances;
  for (const Interval& interval : intervals_) {
    analyses.push_back(&interval.analysis);
    circumstances.producer_cpu_s += interval.analysis_cpu_s;
  }
  const Interval& last = intervals_.back();
  circumstances.sequence = ++sequence_;
  circumstances.time_unix_s = last.time_unix_s;
  circumstances.refresh_s = refresh_s_;
  circumstances.unread_threads = last.unread_threads;
  return snapshot_of(attribution::sum_of_intervals(analyses), last.analysis, circumstances);
}

}  // namespace crosstalk::driver::live
