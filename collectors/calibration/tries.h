// SPDX-License-Identifier: Apache-2.0
// From repeated tries to a figure: how often, which one counts, and when none does.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/machine.h"

namespace crosstalk::collectors::calibration {

/// How much time a figure may take. A try is brief, so that some fit between the interruptions of a busy machine.
struct Effort {
  std::uint64_t try_ns = 1'000'000;
  unsigned least_tries = 12, most_tries = 60;
  std::uint64_t deadline_ns = UINT64_MAX;  // on the monotonic clock: figures that come later are refused
};

/// Seconds for a unit of work, or nullopt: the try was spoilt.
using Try = std::function<std::optional<double>()>;

/// Repeats until a quarter of the tries agree within one per cent, but not less nor more often than `effort` says.
/// Spoilt tries are no part of the result.
[[nodiscard]] std::vector<double> collect(const Effort& effort, const Try& one);

/// Another program on the machine makes tries slower, never faster; so the best one is believed when a quarter of them
/// is near it. Farther than this part of the best, the figure is refused.
inline constexpr double most_spread = 0.25, most_spread_of_median = 0.5;

/// `seconds_per_unit` -> seconds, or units a second.
[[nodiscard]] models::Figure time_figure(std::vector<double> seconds_per_unit, const std::string& method);
[[nodiscard]] models::Figure rate_figure(std::vector<double> seconds_per_unit, const std::string& method);

/// What depends on how two processors happen to take turns has no best try: the median counts, and half of the tries
/// have to be near it.
[[nodiscard]] models::Figure median_figure(std::vector<double> seconds_per_unit, const std::string& method);

[[nodiscard]] models::Figure refused(const std::string& reason, const std::string& method);

/// Seconds of a call.
[[nodiscard]] double seconds_of(const std::function<void()>& work);

/// The number of rounds that take `try_ns`, of work that does what it is told in proportion.
[[nodiscard]] std::uint64_t rounds_for(const Effort& effort, const std::function<void(std::uint64_t rounds)>& work);

}  // namespace crosstalk::collectors::calibration
