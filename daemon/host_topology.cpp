// SPDX-License-Identifier: Apache-2.0
#include "daemon/host_topology.h"

#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <vector>

namespace crosstalk::daemon {
namespace {

constexpr std::uint32_t most_cpus = 8192;
constexpr int most_caches = 16;
constexpr int most_nodes = 1024;

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  return std::getline(in, line) ? std::optional(line) : std::nullopt;
}

std::int32_t number(const std::string& path) {
  const auto line = first_line(path);
  std::int32_t value = -1;
  if (line) {
    std::from_chars(line->data(), line->data() + line->size(), value);
  }
  return value;
}

/// Parses "0-3,8,10-11"; stops at anything else.
std::vector<std::uint32_t> cpu_list(const std::string& text) {
  std::vector<std::uint32_t> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    std::uint32_t first = 0;
    auto [next, error] = std::from_chars(at, end, first);
    if (error != std::errc{}) {
      break;
    }
    std::uint32_t last = first;
    if (next < end && *next == '-') {
      next = std::from_chars(next + 1, end, last).ptr;
    }
    for (std::uint32_t cpu = first; cpu <= last && cpu < most_cpus; ++cpu) {
      cpus.push_back(cpu);
    }
    at = next < end && *next == ',' ? next + 1 : end;
  }
  return cpus;
}

/// Returns the lowest processor that shares this one's cache at a level.
std::int32_t cache_owner(const std::string& cpu_folder, int level) {
  for (int index = 0; index < most_caches; ++index) {
    const std::string cache = cpu_folder + "/cache/index" + std::to_string(index);
    const std::int32_t its_level = number(cache + "/level");
    if (its_level < 0) {
      break;
    }
    const auto type = first_line(cache + "/type");
    if (its_level == level && (!type || *type != "Instruction")) {
      const auto shared = first_line(cache + "/shared_cpu_list");
      const std::vector<std::uint32_t> cpus = shared ? cpu_list(*shared) : std::vector<std::uint32_t>{};
      return cpus.empty() ? -1 : static_cast<std::int32_t>(cpus.front());
    }
  }
  return -1;
}

std::map<std::uint32_t, std::int32_t> nodes_of(const std::string& root) {
  std::map<std::uint32_t, std::int32_t> nodes;
  const auto online = first_line(root + "/node/online");
  for (const std::uint32_t node : online ? cpu_list(*online) : std::vector<std::uint32_t>{}) {
    const auto cpus = first_line(root + "/node/node" + std::to_string(node) + "/cpulist");
    for (const std::uint32_t cpu : cpus&& node < most_nodes ? cpu_list(*cpus) : std::vector<std::uint32_t>{}) {
      nodes[cpu] = static_cast<std::int32_t>(node);
    }
  }
  return nodes;
}

}  // namespace

profile::Topology read_topology(const std::string& root) {
  const auto online = first_line(root + "/cpu/online");
  const auto nodes = nodes_of(root);
  std::vector<profile::CpuPlace> cpus;
  for (const std::uint32_t cpu : online ? cpu_list(*online) : std::vector<std::uint32_t>{}) {
    const std::string folder = root + "/cpu/cpu" + std::to_string(cpu);
    const auto node = nodes.find(cpu);
    cpus.push_back({cpu, number(folder + "/topology/core_id"), number(folder + "/topology/physical_package_id"),
                    cache_owner(folder, 2), cache_owner(folder, 3), node == nodes.end() ? -1 : node->second});
  }
  return profile::Topology(std::move(cpus));
}

}  // namespace crosstalk::daemon
