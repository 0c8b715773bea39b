// SPDX-License-Identifier: Apache-2.0
// What a reader wants to see of an analysis. Rows are restricted; shares stay those of the whole program.
#pragma once

#include <optional>
#include <string>

#include "attribution/model.h"
#include "base/result.h"

namespace crosstalk::attribution {

struct MinCost {
  double value = 0;       // seconds, or a share
  bool of_cpu = false;    // a share of the CPU time of all threads
  std::string text = {};  // as it was written
};

/// Patterns are those of a shell (*, ?, [...]) and match whole names.
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

/// Rows that fit, at most `max_rows` of lines, pairs and objects each, so `analysis` should have all of them:
/// - what passes between threads, where one of the two is of --thread;
/// - what passes by --object, or between lines of which one is of --module's code;
/// - costs of --min-cost and more: of a cell, line, pair, object or finding its cost, of a loop or a function its CPU
///   time, of a thread the cost of its accesses.
/// Findings are left out or left as they are. An error, with what there is, where a filter fits nothing.
[[nodiscard]] Result<Analysis> filtered(Analysis analysis, const Filter& filter, std::size_t max_rows);

}  // namespace crosstalk::attribution
