// SPDX-License-Identifier: Apache-2.0
// The cost to a thread of watchpoints that nobody hits. While one is armed, context switches save and restore debug
// registers, and the processor copies without its fast strings: `rep movs` and `rep stos` of the program, of system
// calls and of page faults go word by word.
//
// docs/reasons.md ("What armed watchpoints cost") has the formula in words.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "collectors/watch_policy/words.h"
#include "profile/arena.h"

namespace crosstalk::in_target {

/// The parts of some time, 0..1, that the watchpoints of a thread were armed.
struct ArmedParts {
  std::array<double, watch_policy::most_registers> event{};

  /// Returns the part that a slot's watchpoints were armed.
  [[nodiscard]] double of_slot(std::uint32_t slot) const {
    const std::uint32_t first = slot * watch_policy::words_per_slot;
    return std::max(event[first], event[first + 1]);
  }
  /// Returns the part that any was armed. Watches of different slots begin and end independently.
  [[nodiscard]] double any() const {
    double none = 1;
    for (std::uint32_t slot = 0; slot < watch_policy::watch_slots; ++slot) {
      none *= 1 - of_slot(slot);
    }
    return 1 - none;
  }
  /// Returns the average number of armed watchpoints.
  [[nodiscard]] double words() const {
    double sum = 0;
    for (const double part : event) {
      sum += part;
    }
    return sum;
  }
};

/// A thread's activity between two looks at it.
struct Activity {
  ArmedParts armed;
  double copying_part = 0;      // of its time in user mode, 0..1: in `rep movs` or `rep stos`
  double kernel_slowdown = 0;   // by what part of its length a system call is longer while armed
  std::uint64_t switches = 0;   // context switches
  std::uint64_t faults = 0;     // page faults that the kernel answered with a cleared or copied page
  std::uint64_t user_ns = 0;    // CPU time in user mode
  std::uint64_t kernel_ns = 0;  // CPU time in the kernel
};

/// Returns by what part of its length a system call that transfers so many bytes is longer while armed.
inline double call_slowdown(std::uint64_t bytes, const profile::SessionConfig& config) {
  constexpr double plain_byte_ns = 0.03;
  const auto copied = static_cast<double>(bytes);
  return copied * config.armed_byte_ps / 1000 / (config.transfer_call_ns + copied * plain_byte_ns);
}

/// The CPU time, nanoseconds, that the thread would have needed less without armed watchpoints. The calibrated prices
/// are `config`'s. A time that was measured holds the slower part already: of T observed, a part p of which ran slower
/// by the factor 1 + s, T p s / (1 + p s) is extra.
inline double armed_cost_ns(const Activity& did, const profile::SessionConfig& config) {
  constexpr double page_bytes = 4096;
  const double part = did.armed.any();
  const auto extra = [part](double time_ns, double slowdown) {
    return time_ns * part * slowdown / (1 + part * slowdown);
  };
  const double by_switches = did.armed.words() * static_cast<double>(did.switches) * config.watch_switch_cost_ns;
  const double by_faults = part * static_cast<double>(did.faults) * page_bytes * config.armed_byte_ps / 1000;
  const double by_system_calls = extra(static_cast<double>(did.kernel_ns), did.kernel_slowdown);
  const double by_copies =
      extra(static_cast<double>(did.user_ns) * did.copying_part, config.armed_copy_permille / 1000.0);
  return by_switches + by_faults + by_system_calls + by_copies;
}

/// The mean of the latest values, about `memory` of them; of fewer, of those.
class RunningMean {
 public:
  void add(double value) {
    constexpr std::uint32_t memory = 128;
    count_ += count_ < memory ? 1 : 0;
    mean_ += (value - mean_) / count_;
  }
  [[nodiscard]] double mean() const { return mean_; }

 private:
  double mean_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace crosstalk::in_target
