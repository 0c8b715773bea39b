// SPDX-License-Identifier: Apache-2.0
// Makes a snapshot of analyses: the window's, and that of its latest refresh. A pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "attribution/model/model.h"
#include "driver/live/snapshot.h"

namespace crosstalk::driver::live {

/// Figures that analyses lack.
struct Circumstances {
  std::uint64_t sequence = 1;
  double time_unix_s = 0, refresh_s = 0;
  double producer_cpu_s = 0;         // of the analyses of the window
  std::uint64_t unread_threads = 0;  // that could not be watched
};

/// Rows that a snapshot has at most. A list that lost some has a warning `rows_left_out`.
inline constexpr std::size_t most_threads = 4096, most_cells = 1024, most_exchange_rows = 60, most_loops = 60,
                             most_code_rows = 200, most_pairs = 32;

/// `window` holds `latest`; both number threads alike.
[[nodiscard]] Snapshot snapshot_of(const attribution::Analysis& window, const attribution::Analysis& latest,
                                   const Circumstances& circumstances);

}  // namespace crosstalk::driver::live
