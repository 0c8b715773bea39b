// SPDX-License-Identifier: Apache-2.0
// From samples of accesses to their figures.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "attribution/memory/memory_model.h"
#include "attribution/memory/memory_samples.h"

namespace crosstalk::attribution {

/// Nearest-rank quantiles; nothing without latencies, whose order is changed.
[[nodiscard]] std::optional<LatencyFigures> latency_figures(std::vector<std::uint32_t>& latencies);

class AccessSums {
 public:
  void add(const MemorySample& sample, const DataSource& source);
  /// `cycle_ps`: how long a cycle takes; 0: not known. Once.
  [[nodiscard]] AccessFigures finish(std::uint32_t cycle_ps);
  /// What rows are ordered by: cost where it is known, then samples.
  [[nodiscard]] double cost_cycles() const { return cost_cycles_; }
  [[nodiscard]] std::uint64_t samples() const { return figures_.samples; }

 private:
  AccessFigures figures_;
  double accesses_ = 0, hitm_ = 0, cost_cycles_ = 0;
  bool all_count_ = true;  // all weights are numbers of accesses
  std::vector<std::uint32_t> latencies_;
};

}  // namespace crosstalk::attribution
