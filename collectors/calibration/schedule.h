// SPDX-License-Identifier: Apache-2.0
// Divides a calibration's time, so that a busy machine costs every figure some tries and none all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/calibration/tries.h"

namespace crosstalk::collectors::calibration {

class Schedule {
 public:
  /// `figures`: how often `next` will be called. The calibration ends at `deadline_ns`.
  Schedule(const Effort& effort, std::uint64_t deadline_ns, std::size_t figures)
      : effort_(effort), deadline_ns_(deadline_ns), left_(figures) {}

  /// Returns the effort for the next figure: an equal part of the time that is left. Later figures get the time that a
  /// figure does not use.
  [[nodiscard]] Effort next(std::uint64_t now_ns);
  /// Skips a figure that needs no time.
  void skip();
  /// Returns the deadline of a preparation that begins now: half of the time that is left, so that the figures keep the
  /// rest.
  [[nodiscard]] std::uint64_t preparation_deadline_ns(std::uint64_t now_ns) const;
  /// Returns the length and the number of tries; without a limit of time.
  [[nodiscard]] const Effort& effort() const { return effort_; }

 private:
  [[nodiscard]] std::uint64_t left_ns(std::uint64_t now_ns) const;

  Effort effort_;
  std::uint64_t deadline_ns_;
  std::size_t left_;
};

}  // namespace crosstalk::collectors::calibration
