// SPDX-License-Identifier: Apache-2.0
// Computes figures from samples of accesses.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "attribution/memory/memory_samples.h"
#include "attribution/model/memory_model.h"

namespace crosstalk::attribution {

/// Nearest-rank quantiles; nothing without latencies. Reorders `latencies`.
[[nodiscard]] std::optional<LatencyFigures> latency_figures(std::vector<std::uint32_t>& latencies);

class AccessSums {
 public:
  void add(const MemorySample& sample, const DataSource& source);
  /// Call it once. `cycle_ps`: duration of a cycle; 0: not known.
  [[nodiscard]] AccessFigures finish(std::uint32_t cycle_ps);
  /// The sort key of rows: cost if it is known, then samples.
  [[nodiscard]] double cost_cycles() const { return cost_cycles_; }
  [[nodiscard]] std::uint64_t samples() const { return figures_.samples; }

 private:
  AccessFigures figures_;
  double accesses_ = 0, hitm_ = 0, cost_cycles_ = 0;
  bool all_count_ = true;  // all weights are numbers of accesses
  std::vector<std::uint32_t> latencies_;
};

}  // namespace crosstalk::attribution
