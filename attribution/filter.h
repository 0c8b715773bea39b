// SPDX-License-Identifier: Apache-2.0
// Restricts an analysis to the requested rows. Shares stay those of the whole program.
#pragma once

#include <optional>
#include <string>

#include "attribution/model/model.h"
#include "base/result.h"

namespace crosstalk::attribution {

struct MinCost {
  double value = 0;       // seconds, or a share
  bool of_cpu = false;    // a share of the CPU time of all threads
  std::string text = {};  // as it was written
};

/// Shell patterns (*, ?, [...]) that match whole names.
struct Filter {
  std::string thread;  // index, name or pattern of names; empty: all
  std::string object;  // name or pattern
  std::string module;  // path, last component of one, or pattern of either
  std::optional<MinCost> min_cost;
  [[nodiscard]] bool restricts_code() const { return !thread.empty() || !object.empty() || !module.empty(); }
  [[nodiscard]] bool empty() const { return !restricts_code() && !min_cost; }
  /// "--thread 'worker*' --min-cost 5%"
  [[nodiscard]] std::string text() const;
};

/// Keeps the rows that fit, at most `max_rows` of lines, pairs and objects each, so `analysis` should have all of them:
/// - exchanges between threads, if one of the two matches --thread;
/// - exchanges by --object, or between lines of which one is in --module's code;
/// - costs of at least --min-cost: the cost of a cell, line, pair, object or finding, the CPU time of a loop or a
///   function, the cost of a thread's accesses.
/// Removes or keeps findings, and never changes them. Fails if a filter matches nothing, and lists the existing names.
[[nodiscard]] Result<Analysis> filtered(Analysis analysis, const Filter& filter, std::size_t max_rows);

}  // namespace crosstalk::attribution
