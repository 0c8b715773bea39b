// SPDX-License-Identifier: Apache-2.0
#include "daemon/host_topology.h"

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/cpu_list.h"
#include "base/number.h"

namespace crosstalk::daemon {
namespace {

constexpr int most_caches = 16;

/// Empty: there is no such file.
std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::vector<std::uint32_t> cpus_of(const std::string& path) { return cpus_in(first_line(path)); }

std::int32_t number(const std::string& path) { return leading_number<std::int32_t>(first_line(path)).value_or(-1); }

/// Returns the lowest processor that shares this one's cache at a level.
std::int32_t cache_owner(const std::string& cpu_folder, int level) {
  for (int index = 0; index < most_caches; ++index) {
    const std::string cache = cpu_folder + "/cache/index" + std::to_string(index);
    const std::int32_t its_level = number(cache + "/level");
    if (its_level < 0) {
      break;
    }
    if (its_level == level && first_line(cache + "/type") != "Instruction") {
      const std::vector<std::uint32_t> cpus = cpus_of(cache + "/shared_cpu_list");
      return cpus.empty() ? -1 : static_cast<std::int32_t>(cpus.front());
    }
  }
  return -1;
}

std::map<std::uint32_t, std::int32_t> nodes_of(const std::string& root) {
  std::map<std::uint32_t, std::int32_t> nodes;
  for (const std::uint32_t node : cpus_of(root + "/node/online")) {
    for (const std::uint32_t cpu : cpus_of(root + "/node/node" + std::to_string(node) + "/cpulist")) {
      nodes[cpu] = static_cast<std::int32_t>(node);
    }
  }
  return nodes;
}

}  // namespace

profile::Topology read_topology(const std::string& root) {
  const auto nodes = nodes_of(root);
  std::vector<profile::CpuPlace> cpus;
  for (const std::uint32_t cpu : cpus_of(root + "/cpu/online")) {
    const std::string folder = root + "/cpu/cpu" + std::to_string(cpu);
    const auto node = nodes.find(cpu);
    cpus.push_back({cpu, number(folder + "/topology/core_id"), number(folder + "/topology/physical_package_id"),
                    cache_owner(folder, 2), cache_owner(folder, 3), node == nodes.end() ? -1 : node->second});
  }
  return profile::Topology(std::move(cpus));
}

}  // namespace crosstalk::daemon
