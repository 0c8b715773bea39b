// SPDX-License-Identifier: Apache-2.0
#include "collectors/facilities/probe_pmu.h"

#include <perfmon/pfmlib.h>

#include <algorithm>

#include "collectors/pmu/memory_events.h"

namespace crosstalk::collectors {

namespace {

std::string join(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : separator) + word;
  }
  return text;
}

Facility core_facility(const MachineDescription& machine, const std::vector<std::string>& core_pmus) {
  std::vector<std::string> core;
  for (const PmuUnit& unit : machine.units) {
    if (is_core_unit(unit.name)) {
      core.push_back(unit.name);
    }
  }
  Facility facility{"CPU PMU", !core.empty(), "", ""};
  if (facility.available) {
    const std::string known = core_pmus.empty() ? "unknown to libpfm4" : "libpfm4: " + join(core_pmus, ", ");
    facility.found = join(core, ", ") + " (" + known + ")";
    return facility;
  }
  facility.found = machine.virtual_machine ? "none: a virtual machine without a virtual PMU"
                                           : "none in /sys/bus/event_source/devices";
  facility.remedy =
      machine.virtual_machine ? "start the virtual machine with a virtual PMU (qemu: -cpu host,pmu=on)" : "";
  return facility;
}

/// "cpu/mem-loads/, cpu/mem-stores/"
Facility sampling_facility(const char* name, const Result<std::vector<MemoryEvent>>& events, const EventTrial& trial) {
  if (!events) {
    return {name, false, events.error().message, ""};
  }
  std::vector<std::string> names;
  for (const MemoryEvent& event : *events) {
    if (const auto opened = trial(event); !opened) {
      return {name, false, opened.error().message, ""};
    }
    names.push_back(event.unit == event.name ? event.unit + "//" : event.unit + "/" + event.name + "/");
  }
  return {name, true, join(names, ", "), ""};
}

/// Offers our own module, with its installation, if the processor has IBS and perf does not give it.
Facility module_facility(const MachineDescription& machine, const Facility& by_perf, const EventTrial& trial) {
  if (machine.ibs_module && machine.ibs_module->emulated) {
    return {"IBS module", false, std::string(ibs_module_device) + " only emulates IBS, for tests", ""};
  }
  Facility facility = sampling_facility("IBS module", ibs_module_events(machine), trial);
  if (facility.available || machine.ibs_module || machine.ibs_module.error().code != ErrorCode::not_found) {
    return facility;
  }
  if (by_perf.available) {
    facility.found = "not needed: perf gives IBS";
  } else if (!machine.has_ibs) {
    facility.found = "not for this processor, which has no IBS";
  } else {
    facility.found += "; it would be the better source here, since perf does not give IBS";
    facility.remedy =
        "in crosstalk's sources: sudo apt install dkms linux-headers-$(uname -r) && sudo dkms add kmod && "
        "sudo dkms install crosstalk-ibs/1 && sudo modprobe crosstalk_ibs";
  }
  return facility;
}

}  // namespace

std::vector<std::string> detected_core_pmus() {
  std::vector<std::string> names;
  if (pfm_initialize() != PFM_SUCCESS) {
    return names;
  }
  for (int i = PFM_PMU_NONE; i < PFM_PMU_MAX; ++i) {
    pfm_pmu_info_t info{};
    info.size = sizeof(info);
    const bool known = pfm_get_pmu_info(static_cast<pfm_pmu_t>(i), &info) == PFM_SUCCESS;
    if (known && info.is_present != 0 && info.type == PFM_PMU_TYPE_CORE) {
      names.emplace_back(info.name);
    }
  }
  std::erase(names, "ix86arch");  // the architectural events, present beside the model's own
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Facility> pmu_facilities(const MachineDescription& machine, const std::vector<std::string>& core_pmus,
                                     const EventTrial& trial) {
  const Facility ibs = sampling_facility("IBS", ibs_events(machine), trial);
  return {core_facility(machine, core_pmus), sampling_facility("PEBS", pebs_events(machine), trial), ibs,
          module_facility(machine, ibs, trial)};
}

Facility counter_facility(const Result<CounterPlan>& plan) {
  constexpr const char* name = "hardware counters";
  if (!plan) {
    return {name, false, plan.error().message, ""};
  }
  std::vector<std::string> counted;
  for (const profile::CounterRow& row : counter_rows(*plan)) {
    if (std::find(counted.begin(), counted.end(), row.name) == counted.end()) {
      counted.push_back(row.name);
    }
  }
  const std::size_t groups = plan->groups.size();
  std::string found =
      join(counted, ", ") + "; in " + std::to_string(groups) + (groups == 1 ? " group" : " groups, which take turns");
  found += plan->lacking.empty() ? "" : "; lacking: " + join(plan->lacking, "; ");
  return {name, true, std::move(found), ""};
}

}  // namespace crosstalk::collectors
