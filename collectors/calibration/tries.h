// SPDX-License-Identifier: Apache-2.0
// From repeated tries to a figure: how often, which ones count, and when none does.
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
  unsigned least_tries = 12, most_tries = 60;  // that nothing disturbed
  std::uint64_t deadline_ns = UINT64_MAX;      // of this figure, on the monotonic clock: only tries until then count
};

struct Trial {
  double seconds = 0;  // for a unit of work
  bool disturbed = false;
};
/// nullopt: the measured event did not happen.
using Try = std::function<std::optional<Trial>()>;

/// Seconds for a unit of work, ascending.
struct Tries {
  std::vector<double> quiet;      // nothing disturbed
  std::vector<double> disturbed;  // something else had the processor meanwhile, for a part of them
  unsigned spoilt = 0;            // told nothing
  bool out_of_time = false;

  [[nodiscard]] std::size_t made() const { return quiet.size() + disturbed.size() + spoilt; }
  /// Returns the quiet tries if they are enough; else all, as the best may still be true if others come near it.
  [[nodiscard]] std::vector<double> counting() const;
};
/// A quarter of fewer is the best one by itself.
inline constexpr std::size_t enough_tries = 5;

/// Repeats until a quarter of the quiet tries agree within one per cent, within the number of tries in `effort`.
/// Disturbed tries are repeated until its deadline, or until they are too many to be worth it.
[[nodiscard]] Tries collect(const Effort& effort, const Try& one);

/// Another program on the machine makes tries slower, never faster; so the best one is believed when a quarter of them
/// is near it. Farther than this part of the best, the figure is refused.
inline constexpr double most_spread = 0.25, most_spread_of_median = 0.5;

/// Seconds for a unit -> seconds, or units a second.
[[nodiscard]] models::Figure time_figure(const Tries& tries, const std::string& method);
[[nodiscard]] models::Figure rate_figure(const Tries& tries, const std::string& method);

/// A measurement that depends on how two processors happen to take turns has no best try: the median counts, and half
/// of the tries have to be near it.
[[nodiscard]] models::Figure median_figure(const Tries& tries, const std::string& method);

[[nodiscard]] models::Figure refused(const std::string& reason, const std::string& method);

/// Returns the seconds of a call.
[[nodiscard]] double seconds_of(const std::function<void()>& work);

/// Returns the number of rounds that take `try_ns` of CPU time, for work proportional to its rounds.
[[nodiscard]] std::uint64_t rounds_for(const Effort& effort, const std::function<void(std::uint64_t rounds)>& work);

}  // namespace crosstalk::collectors::calibration
