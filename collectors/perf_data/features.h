// SPDX-License-Identifier: Apache-2.0
// The feature sections of a perf.data file, which describe the machine and the recording: those that an import uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/byte_cursor.h"
#include "base/result.h"

namespace crosstalk::perf_data {

enum class Feature : std::uint32_t {
  build_id = 2,
  hostname = 3,
  os_release = 4,
  architecture = 6,
  processors = 7,
  cpu_description = 8,
  cpu_id = 9,
  command_line = 11,
  event_description = 12,
  cpu_topology = 13,
  numa_topology = 14,
  pmu_mappings = 16,
  cache = 20,
};

struct CpuPlace {
  std::uint32_t core = 0, socket = 0;
};

struct NumaNode {
  std::uint32_t number = 0;
  std::string cpus;
};

struct Pmu {
  std::uint32_t type = 0;
  std::string name;
};

struct Cache {
  std::uint32_t level = 0, line_bytes = 0;
  std::string cpus;
};

/// Fields that are missing from the file are empty or 0.
struct Features {
  std::string hostname, os_release, architecture, cpu_description, cpu_id;
  std::uint32_t cpus_available = 0, cpus_online = 0;
  std::vector<std::string> command_line;
  std::vector<std::string> event_names;
  std::vector<CpuPlace> places;  // by processor; empty: old files do not say
  std::vector<NumaNode> numa;
  std::vector<Pmu> pmus;
  std::vector<Cache> caches;
};

/// Adds the contents `bytes` of `feature`. Skips those that are of no use here, and build ids, which are records.
/// Errors name the damaged feature.
[[nodiscard]] Result<void> add_feature(std::uint32_t feature, std::span<const std::byte> bytes, ByteOrder order,
                                       Features& features);

}  // namespace crosstalk::perf_data
