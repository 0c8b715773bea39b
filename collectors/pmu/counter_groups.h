// SPDX-License-Identifier: Apache-2.0
// Chooses the hardware counters that are read together on a machine, and their attributes. Pure.
//
// The core's cycles lead a group, and take a sample each period; a sample contains all counts of the group so far, and
// its instruction. Two samples tell what the thread did in between, at the same rate for all of the group. The clock
// that samples the thread stays out of it: a group whose counters are taken does not count, and would not tick.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "collectors/pmu/counter_table.h"
#include "collectors/pmu/event_library.h"
#include "collectors/pmu/machine_description.h"
#include "profile/counter_reading.h"

namespace crosstalk::collectors {

struct CounterEvent {
  profile::CounterRow row;  ///< without numbers
  CounterFamily family = CounterFamily::base;
  perf_event_attr attr{};
  unsigned counters = 1;  ///< that it takes
  CounterPlace place = CounterPlace::any;
};

/// The first leads, and counts cycles.
struct CounterGroup {
  std::string unit;
  std::vector<CounterEvent> events;
};

struct CounterPlan {
  std::vector<CounterGroup> groups;
  std::vector<std::string>
      lacking;  ///< what is not counted, and why: "floating-point operations: its counters count none"
};

struct CounterWish {
  /// Quantities ("l3_misses"), families ("flops"), or events ("cpu/event=0xd0,umask=0x82/", "BR_INST_RETIRED"); empty:
  /// all that figures use.
  std::vector<std::string> names;
  bool nmi_watchdog = false;               ///< the kernel's, which has a counter of each processor
  std::uint64_t first_period = 4'000'000;  ///< cycles from one reading to the next, to begin with
};

/// The first words of a list, as a user gives it: at commas that stand in no event's terms.
[[nodiscard]] std::vector<std::string> counter_names(std::string_view list);

/// Returns groups for each kind of core. unsupported: there is no unit of cores, or its events are not known.
/// invalid_argument: an unknown name, with the nearest ones.
[[nodiscard]] Result<CounterPlan> counter_groups(const MachineDescription& machine, const EventLibrary& library,
                                                 const CounterWish& wish = {});

/// The result of opening events as a group, and of testing them: errno and index of the first refused one.
struct GroupOutcome {
  int error = 0;  ///< 0: all were opened
  std::size_t refused = 0;
  Error why = {};  ///< in one line, with the remedy
};
using GroupTrial = std::function<GroupOutcome(std::span<const CounterEvent> group)>;

/// Fits the plan to the kernel: an event that it refuses as too much for a group counts in a group of its own or with
/// others of that kind; an event that it refuses alone is lacking. Errors: no group's cycles can be opened.
[[nodiscard]] Result<CounterPlan> fit_groups(CounterPlan plan, const GroupTrial& trial);

/// Opens the group for this thread, tests it (event_self_test.h), and closes it again. ENODATA: the event never counts,
/// or never samples.
[[nodiscard]] GroupOutcome try_group(std::span<const CounterEvent> group);

/// True if the kernel's NMI watchdog has a counter of each processor.
[[nodiscard]] bool nmi_watchdog_is_on();
/// True if it holds a counter that events of this source could have. IBS has a counter of its own.
[[nodiscard]] inline bool watchdog_competes(profile::SourceKind source) {
  return source == profile::SourceKind::pebs && nmi_watchdog_is_on();
}

/// Numbers the events, in the order of groups.
[[nodiscard]] std::vector<profile::CounterRow> counter_rows(const CounterPlan& plan);

}  // namespace crosstalk::collectors
