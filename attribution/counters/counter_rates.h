// SPDX-License-Identifier: Apache-2.0
// Rates of hardware events in a loop, or in a whole thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attribution/model/model.h"
#include "models/cycle_accounting.h"
#include "profile/counter_reading.h"

namespace crosstalk::attribution {

/// The rate of one event.
struct CountedRate {
  std::string name;  // of the quantity; of an event that a user named, that name
  profile::CounterQuantity quantity = profile::CounterQuantity::other;
  double per_s = 0;  // of CPU time, in user mode and in the kernel; counted in user mode
  Interval ci95;
  double per_cycle = 0;  // of those in user mode
};

/// Parts of the cycles by the use of the core's micro-operation slots. Their sum is 1, or a little less if a sibling
/// took some. A. Yasin, "A Top-Down Method for Performance Analysis and Counters Architecture", ISPASS 2014.
struct TopDown {
  double retiring = 0, frontend = 0, bad_speculation = 0, backend = 0;
};

struct CounterRates {
  std::vector<CountedRate> rates;  // in the order of quantities
  std::uint64_t intervals = 0;     // between two readings, that they rest on
  double seconds = 0;              // in which those were counted
  double left = 0;                 // of the intervals that began here, the part that ended elsewhere; they are left out
  double elsewhere = 0;            // of `seconds`, at most so much was spent elsewhere, and come back from
  std::string unknown;             // why there are none, half a sentence; empty: there are

  /// Null: the rate is not known.
  [[nodiscard]] const CountedRate* of(profile::CounterQuantity quantity) const;
  [[nodiscard]] std::optional<double> per_s(profile::CounterQuantity quantity) const;
  [[nodiscard]] std::optional<double> per_cycle(profile::CounterQuantity quantity) const;
  /// Instructions a cycle.
  [[nodiscard]] std::optional<double> ipc() const { return per_cycle(profile::CounterQuantity::instructions); }
  /// The sum over all widths; without a rate if not all of them were counted.
  [[nodiscard]] Rate flops() const;
  /// The part of floating-point operations on more than one element at a time.
  [[nodiscard]] std::optional<double> packed() const;
  [[nodiscard]] std::optional<TopDown> top_down() const;
  /// Parts of the cycles without execution while a load waited for data from L1D, L2, L3, memory.
  [[nodiscard]] std::optional<models::LevelShares> stalled() const;
};

/// The counters of a profile.
struct CounterSummary {
  struct Thread {
    std::uint32_t thread = 0;  // index
    CounterRates rates;
  };
  std::vector<profile::CounterRow> counters;
  std::vector<Thread> threads;  // with readings, by index
};

}  // namespace crosstalk::attribution
