// SPDX-License-Identifier: Apache-2.0
// The arrays that loops of loads and stores go through, for each member of a team, and the times of such loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "collectors/calibration/bench.h"
#include "collectors/calibration/traffic_kernels.h"

namespace crosstalk::collectors::calibration {

/// Memory of each member of a team, with its arrays.
class Arrays {
 public:
  /// Makes `bytes` for each member, on `cpus`, each by itself, in `memory`, which has to outlive them. Refused if there
  /// is not so much by `deadline_ns`.
  static Result<Arrays> make(Team& team, const std::vector<std::uint32_t>& cpus, std::uint64_t bytes,
                             HeldMemory& memory, std::uint64_t deadline_ns);
  /// Bytes of each of as many arrays as `traffic` has.
  [[nodiscard]] std::uint64_t each(models::Traffic traffic) const;
  /// A member's arrays, `bytes` of each from `offset` on.
  [[nodiscard]] TrafficArrays of(unsigned member, models::Traffic traffic, std::uint64_t offset,
                                 std::uint64_t bytes) const;

 private:
  std::uint64_t bytes_ = 0;
  std::vector<std::byte*> memory_;  // of each member
};

/// A loop over the arrays of a traffic.
struct TrafficLoop {
  models::Traffic traffic;
  std::function<void(const TrafficArrays& part, std::uint64_t passes)> run;
};
/// Windows of arrays that no cache holds, one after the other, so that nothing of the next one is left in any.
class Windows {
 public:
  Windows(const Arrays& arrays, models::Traffic traffic);
  /// Bytes of each array in a window.
  [[nodiscard]] std::uint64_t bytes() const { return window_; }
  /// The offset of the next one.
  [[nodiscard]] std::uint64_t next();

 private:
  std::uint64_t each_, window_, offset_ = 0;
};

/// Seconds for each byte that a loop moves at a level: passes over the same arrays, or in memory windows of them.
/// `moved_per_requested`: bytes that count for each that its instructions load or store.
[[nodiscard]] Tries seconds_a_byte(Bench& bench, const Effort& effort, Team& team, const Arrays& arrays,
                                   const TrafficLoop& loop, models::Level level, double moved_per_requested);

}  // namespace crosstalk::collectors::calibration
