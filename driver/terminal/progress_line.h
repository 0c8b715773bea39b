// SPDX-License-Identifier: Apache-2.0
// Shows a recording's progress as one line on standard error, redrawn in place and erased at the end.
#pragma once

#include <string>

#include "daemon/session.h"

namespace crosstalk::driver {

/// "12.3 s, 4 threads, 3051 samples, 120 accesses trapped, overhead 1.2 %"
[[nodiscard]] std::string describe_progress(const daemon::Progress& progress);

class ProgressLine {
 public:
  /// Shows nothing unless `enabled` and standard error is a terminal that can erase.
  explicit ProgressLine(bool enabled);
  ~ProgressLine() { erase(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const daemon::Progress& progress);
  void show(const std::string& text);
  void erase();

 private:
  bool enabled_;
  bool shown_ = false;
};

}  // namespace crosstalk::driver
