// SPDX-License-Identifier: Apache-2.0
// The events that processors' performance monitoring units count, by microarchitecture, as far as figures use them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "profile/counter_reading.h"

namespace crosstalk::collectors {

/// Events that are divided by each other, or subtracted: they are to count at the same time.
enum class CounterFamily : std::uint8_t { base, flops, accesses, traffic, slots, stalls };
inline constexpr std::size_t counter_families = 6;
/// "floating-point operations", to name a lack.
[[nodiscard]] const char* in_words(CounterFamily family);
/// "base", "flops", "accesses", "traffic", "slots", "stalls": as a user names them.
[[nodiscard]] const char* name_of(CounterFamily family);

/// The counters that an event can have.
enum class CounterPlace : std::uint8_t {
  any,
  lower,  ///< the first four of eight
  /// While it counts, the kernel gives each of a core's two threads half of the counters: if one thread reads such an
  /// event, the other may not use that counter (errata BJ122, BV98, HSD29).
  alone,
};

struct CountedEvent {
  profile::CounterQuantity quantity = profile::CounterQuantity::other;
  CounterFamily family = CounterFamily::base;
  std::uint64_t config = 0;  ///< for perf_event_attr
  double each = 1;           ///< how much of the quantity a count stands for
  std::string_view name;     ///< libpfm4's of the table's units, else the manual's; of two with a + between, both masks
  unsigned counters = 1;     ///< that it takes; 0: one that counts nothing else
  CounterPlace place = CounterPlace::any;
  bool in_library = true;  ///< libpfm4 knows the name, and encodes it so
};
/// The number of counters that CounterPlace::lower names.
inline constexpr unsigned lower_counters = 4;

/// A kind of core.
struct CounterTable {
  std::string_view core;       ///< "Skylake"
  std::string_view libraries;  ///< libpfm4's names of units that have these events, with spaces between; empty: none
  unsigned counters = 4;       ///< that count events, of a thread whose core another shares
  bool has_fixed = false;      ///< cycles and instructions have counters of their own
  std::span<const CountedEvent> events;
  /// Why figures of a family are not there; empty: they are.
  std::array<std::string_view, counter_families> lacks = {};
};

/// Returns the table for a model of Intel's family 6, or for the small cores of such a model, or for a family of AMD or
/// Hygon. Null: not known.
[[nodiscard]] const CounterTable* counter_table(std::string_view vendor, unsigned family, unsigned model,
                                                bool small_core);
/// All of them, for tests.
[[nodiscard]] std::span<const CounterTable* const> all_counter_tables();

}  // namespace crosstalk::collectors
