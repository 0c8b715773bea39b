// SPDX-License-Identifier: Apache-2.0
// The costs of observing on a machine, as calibrate() (probe.h) measures them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace crosstalk::collectors {

/// Nanoseconds, unless said otherwise; 0: was not measured.
struct ObservingCosts {
  std::uint32_t signal = 0;         // its delivery, and the return from it
  std::uint32_t trap = 0;           // of a watchpoint, without its handler
  std::uint32_t switch_clock = 0;   // added by a perf task clock to a context switch
  std::uint32_t switch_watch = 0;   // added to it by an armed watchpoint
  std::uint32_t presence = 0;       // added to it by open ones while none is armed
  std::uint32_t perf_sample = 0;    // of a task clock, without its handler
  std::uint32_t copy_permille = 0;  // extra time of a copy while a watchpoint is armed, in thousandths
  std::uint32_t byte_ps = 0;        // and picoseconds for each byte
  std::uint32_t transfer_call = 0;  // a system call that transfers a byte
  bool operator==(const ObservingCosts&) const = default;
};

struct NamedCost {
  std::string_view name;
  std::uint32_t ObservingCosts::*field;
};
inline constexpr std::array<NamedCost, 9> named_costs = {{{"signal_ns", &ObservingCosts::signal},
                                                          {"trap_ns", &ObservingCosts::trap},
                                                          {"switch_clock_ns", &ObservingCosts::switch_clock},
                                                          {"switch_watch_ns", &ObservingCosts::switch_watch},
                                                          {"presence_ns", &ObservingCosts::presence},
                                                          {"perf_sample_ns", &ObservingCosts::perf_sample},
                                                          {"copy_permille", &ObservingCosts::copy_permille},
                                                          {"byte_ps", &ObservingCosts::byte_ps},
                                                          {"transfer_call_ns", &ObservingCosts::transfer_call}}};
/// A larger value is no measurement.
inline constexpr std::uint32_t absurd_cost = 10'000'000;

/// `a`, and of `b` what `a` lacks.
[[nodiscard]] inline ObservingCosts completed(ObservingCosts a, const ObservingCosts& b) {
  for (const NamedCost& cost : named_costs) {
    a.*cost.field = a.*cost.field != 0 ? a.*cost.field : b.*cost.field;
  }
  return a;
}

}  // namespace crosstalk::collectors
