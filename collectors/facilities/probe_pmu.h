// SPDX-License-Identifier: Apache-2.0
// The performance monitoring units that the kernel offers, and libpfm4's names of them.
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

/// Returns the facilities "CPU PMU", "PEBS", "IBS" and "IBS module": their presence, and for the latter three, what
/// `trial` lets this user open.
[[nodiscard]] std::vector<Facility> pmu_facilities(const MachineDescription& machine,
                                                   const std::vector<std::string>& core_pmus, const EventTrial& trial);

/// Returns the facility "hardware counters": the counters that can be read, and the lacking ones. `plan`: as the kernel
/// takes it.
[[nodiscard]] Facility counter_facility(const Result<CounterPlan>& plan);

}  // namespace crosstalk::collectors
