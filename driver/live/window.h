// SPDX-License-Identifier: Apache-2.0
// The analyses of the last seconds, and their sum.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "attribution/model/model.h"
#include "driver/live/snapshot.h"

namespace crosstalk::driver::live {

/// The contents of one file of the recorder.
struct Interval {
  attribution::Analysis analysis;    // session.begin_ns and end_ns are the interval's
  double analysis_cpu_s = 0;         // that the analysis took
  std::uint64_t unread_threads = 0;  // that could not be watched
  double time_unix_s = 0;            // of its end
};

/// Not thread-safe.
class Window {
 public:
  /// `window_s`: that the figures cover. `refresh_s`: of an interval. The window has one interval at least.
  Window(double window_s, double refresh_s) : window_s_(window_s), refresh_s_(refresh_s) {}

  /// Takes the next interval and drops those that lie before the window.
  void add(Interval interval);
  /// Takes an interval whose end has not come yet: it counts until the next one comes, which holds it.
  void add_begun(Interval interval);
  [[nodiscard]] bool empty() const { return intervals_.empty(); }
  /// The sum of all that the window has now. Precondition: not empty.
  [[nodiscard]] Snapshot next();

 private:
  double window_s_, refresh_s_;
  std::deque<Interval> intervals_;
  bool last_is_begun_ = false;
  std::uint64_t sequence_ = 0;
};

}  // namespace crosstalk::driver::live
