// SPDX-License-Identifier: Apache-2.0
// The units of samples' weights, and the meaning of their sums.
//
// A clock's samples represent nanoseconds: the sum of communicating ones is a cost. A hardware source's represent
// accesses, or micro-operations of which each access is one: the sum of communicating ones is the number of
// communications, and gives no time. Sums of different units are different things: every stratum has one unit, and so
// has every sum over strata.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "profile/model.h"

namespace crosstalk::attribution {

inline constexpr std::size_t weight_units = 5;
inline constexpr std::array<profile::WeightUnit, weight_units> all_weight_units = {
    profile::WeightUnit::ns, profile::WeightUnit::accesses, profile::WeightUnit::micro_ops, profile::WeightUnit::cycles,
    profile::WeightUnit::occurrences};

/// One value for each unit.
template <class Value>
class ByUnit {
 public:
  [[nodiscard]] Value& operator[](profile::WeightUnit unit) { return values_[static_cast<std::size_t>(unit)]; }
  [[nodiscard]] const Value& operator[](profile::WeightUnit unit) const {
    return values_[static_cast<std::size_t>(unit)];
  }

 private:
  std::array<Value, weight_units> values_{};
};

/// True if sums of communicating samples are a cost.
[[nodiscard]] constexpr bool is_time(profile::WeightUnit unit) { return unit == profile::WeightUnit::ns; }
/// True if sums of communicating samples are a number of communications.
[[nodiscard]] constexpr bool is_count(profile::WeightUnit unit) {
  return unit == profile::WeightUnit::accesses || unit == profile::WeightUnit::micro_ops;
}

/// The reason why probes do not give the number of communications.
inline constexpr const char* why_no_counts_of_probes = "a probe sees that a line is stored to, not how often";

/// A minimum latency up to this includes all loads: no processor can be asked for less.
inline constexpr std::uint32_t every_load_cycles = 3;
/// The reason why samples of `events` do not give the number of communications; empty: they do. Without fast loads, a
/// sample cannot be followed to its thread's next access.
[[nodiscard]] inline std::string why_no_counts(std::span<const profile::EventRow> events) {
  for (const profile::EventRow& event : events) {
    if (profile::is_filtered(event) && event.least_latency_cycles == 0) {
      return "samples are of misses of the L3 cache alone: what threads of one L3 exchange is not among them";
    }
    if (profile::is_filtered(event)) {
      return "samples are of loads alone that took " + std::to_string(event.least_latency_cycles) +
             " cycles or more, and stand for no number of accesses";
    }
    if (is_count(event.unit) && event.least_latency_cycles > every_load_cycles) {
      return "samples are of loads alone that took " + std::to_string(event.least_latency_cycles) +
             " cycles or more: what follows the others is not known";
    }
  }
  return {};
}

}  // namespace crosstalk::attribution
