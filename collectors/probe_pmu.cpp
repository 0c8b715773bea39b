// SPDX-License-Identifier: Apache-2.0
#include "collectors/probe_pmu.h"

#include <perfmon/pfmlib.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace crosstalk::collectors {

namespace {

const std::string sysfs = "/sys/bus/event_source/devices/";

std::string join(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : separator) + word;
  }
  return text;
}

bool is_core_pmu(const std::string& name) { return name == "cpu" || name == "cpu_core" || name == "cpu_atom"; }

std::vector<std::string> core_sources(const std::vector<std::string>& sources) {
  std::vector<std::string> core;
  std::copy_if(sources.begin(), sources.end(), std::back_inserter(core), is_core_pmu);
  return core;
}

/// The highest precise_ip that the kernel says the unit takes; 0 when it does not say.
int max_precise(const std::string& source) {
  const auto text = read_small_file(sysfs + source + "/caps/max_precise");
  int value = 0;
  if (text) {
    std::from_chars(text->data(), text->data() + text->size(), value);
  }
  return value;
}

const char* where_units_are_hidden(const CpuFacts& cpu) {
  return cpu.virtual_machine ? "start the virtual machine with a virtual PMU (qemu: -cpu host,pmu=on)" : "";
}

Facility core_facility(const std::vector<std::string>& core, const CpuFacts& cpu,
                       const std::vector<std::string>& core_pmus) {
  Facility facility{"CPU PMU", !core.empty(), "", ""};
  const std::string known = core_pmus.empty() ? "unknown to libpfm4" : "libpfm4: " + join(core_pmus, ", ");
  if (facility.available) {
    facility.found = join(core, ", ") + " (" + known + ")";
    return facility;
  }
  facility.found = cpu.virtual_machine ? "none: a virtual machine without a virtual PMU" : "none in " + sysfs;
  facility.remedy = where_units_are_hidden(cpu);
  return facility;
}

Facility pebs_facility(const std::vector<std::string>& core, const CpuFacts& cpu) {
  Facility facility{"PEBS", false, "", ""};
  if (cpu.vendor != "GenuineIntel") {
    facility.found = "not an Intel processor";
    return facility;
  }
  int precise = 0;
  for (const std::string& source : core) {
    precise = std::max(precise, max_precise(source));
  }
  facility.available = precise >= 2;
  if (core.empty()) {
    facility.found = "no CPU PMU";
  } else {
    facility.found = "precise_ip up to " + std::to_string(precise);
  }
  return facility;
}

Facility ibs_facility(const std::vector<std::string>& sources, const CpuFacts& cpu) {
  Facility facility{"IBS", false, "", ""};
  if (cpu.vendor != "AuthenticAMD") {
    facility.found = "not an AMD processor";
    return facility;
  }
  facility.available = std::binary_search(sources.begin(), sources.end(), "ibs_op");
  facility.found = facility.available ? "ibs_op" : "no ibs_op in " + sysfs;
  return facility;
}

}  // namespace

bool has_core_pmu(const std::vector<std::string>& sources) {
  return std::any_of(sources.begin(), sources.end(), is_core_pmu);
}

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

std::vector<Facility> pmu_facilities(const std::vector<std::string>& sources, const CpuFacts& cpu,
                                     const std::vector<std::string>& core_pmus) {
  const std::vector<std::string> core = core_sources(sources);
  return {core_facility(core, cpu, core_pmus), pebs_facility(core, cpu), ibs_facility(sources, cpu)};
}

}  // namespace crosstalk::collectors
