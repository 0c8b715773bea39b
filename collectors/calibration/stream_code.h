// SPDX-License-Identifier: Apache-2.0
// Loops over arrays of one width and one mix of loads and stores, with any number of instructions between them.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "collectors/calibration/code_writer.h"
#include "collectors/calibration/traffic_kernels.h"
#include "models/machine.h"

namespace crosstalk::collectors::calibration {

struct StreamShape {
  models::Width width = models::Width::scalar;  // scalar: doubles
  models::Mix mix = models::Mix::loads;
  std::uint32_t fillers = 0;                // after each group: a load, a store, or a store behind its loads
  models::Kind filler = models::Kind::nop;  // with vectors no narrower than `width`, lest two encodings mix
};

/// The traffic that has the mix's arrays: load, triad, copy, store.
[[nodiscard]] models::Traffic traffic_of(models::Mix mix);
/// Memory instructions of a group.
[[nodiscard]] std::uint32_t group_size(models::Mix mix);
[[nodiscard]] std::uint32_t vector_bytes(models::Width width);

/// A store stores what the load before it has loaded: a = c for 2:1, a = b for 1:1, a = scale for stores alone.
class StreamLoop {
 public:
  [[nodiscard]] static Result<StreamLoop> make(const StreamShape& shape);
  /// Goes through the arrays `passes` times, once at least; they are as for traffic kernels. The processor has to
  /// support the width.
  void run(const TrafficArrays& arrays, std::uint64_t passes) const;
  /// Memory instructions of `passes` over arrays of `bytes` each.
  [[nodiscard]] std::uint64_t memory_instructions(std::uint64_t bytes, std::uint64_t passes) const;
  [[nodiscard]] const StreamShape& shape() const { return shape_; }
  [[nodiscard]] const ExecutableCode& code() const { return code_; }

 private:
  StreamShape shape_;
  ExecutableCode code_;
};

}  // namespace crosstalk::collectors::calibration
