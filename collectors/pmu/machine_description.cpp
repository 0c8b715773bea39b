// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/machine_description.h"

#include <algorithm>
#include <filesystem>

#include "base/number.h"
#include "base/proc_fields.h"

namespace crosstalk::collectors {
namespace {

/// Returns the names in a folder, sorted; empty if there is none.
std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::map<std::string, std::string, std::less<>> files_in(const std::filesystem::path& folder) {
  std::map<std::string, std::string, std::less<>> files;
  for (const std::string& name : names_in(folder)) {
    if (auto text = read_small_file(folder / name)) {
      files.emplace(name, std::move(*text));
    }
  }
  return files;
}

}  // namespace

int PmuUnit::max_precise() const {
  const auto cap = caps.find("max_precise");
  return cap == caps.end() ? 0 : leading_number<int>(cap->second).value_or(0);
}

const PmuUnit* MachineDescription::unit(std::string_view name) const {
  const auto found = std::find_if(units.begin(), units.end(), [&](const PmuUnit& u) { return u.name == name; });
  return found == units.end() ? nullptr : &*found;
}

MachineDescription describe_machine(const std::string& root) {
  MachineDescription machine;
  const std::string cpuinfo = read_small_file(root + "/proc/cpuinfo").value_or("");
  const CpuFacts facts = parse_cpuinfo(cpuinfo);
  machine.vendor = facts.vendor;
  machine.virtual_machine = facts.virtual_machine;
  machine.has_ibs = facts.has_ibs;
  machine.family = leading_number<unsigned>(proc_field(cpuinfo, "cpu family").value_or("")).value_or(0);
  machine.model = leading_number<unsigned>(proc_field(cpuinfo, "model").value_or("")).value_or(0);
  machine.kernel = parse_kernel_release(read_small_file(root + "/proc/sys/kernel/osrelease").value_or(""));
  const std::filesystem::path devices = root + "/sys/bus/event_source/devices";
  for (const std::string& name : names_in(devices)) {
    if (!is_core_unit(name) && !name.starts_with("ibs_")) {
      continue;  // large machines have hundreds of others
    }
    PmuUnit unit;
    unit.name = name;
    const std::filesystem::path folder = devices / name;
    unit.type = leading_number<std::uint32_t>(read_small_file(folder / "type").value_or("")).value_or(0);
    unit.format = files_in(folder / "format");
    unit.events = files_in(folder / "events");
    unit.caps = files_in(folder / "caps");
    machine.units.push_back(std::move(unit));
  }
  if (root.empty()) {
    machine.ibs_module = ask_ibs_module();
  }
  return machine;
}

}  // namespace crosstalk::collectors
