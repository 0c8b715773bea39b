// SPDX-License-Identifier: Apache-2.0
// Which performance monitoring units the kernel offers, and what libpfm4 calls them.
#pragma once

#include <string>
#include <vector>

#include "collectors/facility.h"
#include "collectors/pmu/counter_groups.h"
#include "collectors/pmu/machine_description.h"
#include "collectors/pmu/source_choice.h"

namespace crosstalk::collectors {

/// libpfm4's names of the core PMUs that it detects on this processor ("skx", "amd64_fam19h_zen3", ...), sorted.
/// Detected by CPUID: a virtual machine may hide the unit although its processor is known.
[[nodiscard]] std::vector<std::string> detected_core_pmus();

/// The facilities "CPU PMU", "PEBS", "IBS" and "IBS module": what there is, and of the latter three, what `trial` lets
/// this user open.
[[nodiscard]] std::vector<Facility> pmu_facilities(const MachineDescription& machine,
                                                   const std::vector<std::string>& core_pmus, const EventTrial& trial);

/// "hardware counters": what of the machine's counters can be read, and what is lacking. `plan`: as the kernel takes
/// it.
[[nodiscard]] Facility counter_facility(const Result<CounterPlan>& plan);

}  // namespace crosstalk::collectors
