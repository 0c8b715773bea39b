// SPDX-License-Identifier: Apache-2.0
// The kernel's description of a machine's performance monitoring units, as data: read once, here or from a copy of
// another machine's files, and judged by pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collectors/pmu/event_terms.h"
#include "collectors/pmu/ibs_module.h"
#include "collectors/probe_system.h"

namespace crosstalk::collectors {

/// A directory of /sys/bus/event_source/devices.
struct PmuUnit {
  std::string name;
  std::uint32_t type = 0;  ///< for perf_event_attr
  EventFormat format;
  std::map<std::string, std::string, std::less<>> events;  ///< "mem-loads" -> "event=0xcd,umask=0x1,ldlat=3"
  std::map<std::string, std::string, std::less<>> caps;    ///< "max_precise" -> "3"

  /// Returns the highest precise_ip that the kernel says it takes; 0 if it does not say.
  [[nodiscard]] int max_precise() const;
};

/// A unit of the processor's cores: "cpu", or one for each kind of core.
[[nodiscard]] inline bool is_core_unit(std::string_view name) {
  return name == "cpu" || name == "cpu_core" || name == "cpu_atom";
}

struct MachineDescription {
  std::string vendor;  ///< "GenuineIntel", "AuthenticAMD", ...; empty: not known
  unsigned family = 0, model = 0;
  bool virtual_machine = false;
  std::optional<KernelVersion> kernel;
  std::vector<PmuUnit> units;  ///< of cores and of IBS, by name
  bool has_ibs = false;        ///< the processor says that it has instruction-based sampling
  /// Our own kernel module for IBS, or why it cannot be used.
  Result<IbsModule> ibs_module = fail(ErrorCode::not_found, std::string(ibs_module_device) + " is not there");

  [[nodiscard]] const PmuUnit* unit(std::string_view name) const;
};

/// Reads /proc/cpuinfo, /proc/sys/kernel/osrelease and /sys/bus/event_source/devices below `root` ("" for this machine,
/// whose kernel module is asked, too). Leaves missing fields empty; values that are no numbers become 0.
[[nodiscard]] MachineDescription describe_machine(const std::string& root = "");

}  // namespace crosstalk::collectors
