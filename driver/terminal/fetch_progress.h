// SPDX-License-Identifier: Apache-2.0
// Shows a line on the terminal while debug information is fetched from the servers of DEBUGINFOD_URLS.
#pragma once

#include <string>

#include "driver/terminal/progress_line.h"
#include "symbolizer/elf/debuginfod.h"

namespace crosstalk::driver {

/// "fetching debug information 1a2b3c4d, 2.1 MiB of 14 MiB, 3 s"
[[nodiscard]] std::string describe_wait(const symbolizer::Debuginfod::Wait& wait);

/// Shows waits during its lifetime; only one may exist at a time.
class FetchProgress {
 public:
  FetchProgress();
  ~FetchProgress();
  FetchProgress(const FetchProgress&) = delete;
  FetchProgress& operator=(const FetchProgress&) = delete;

 private:
  ProgressLine line_;
};

}  // namespace crosstalk::driver
