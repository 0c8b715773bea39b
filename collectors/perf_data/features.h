// SPDX-License-Identifier: Apache-2.0
// The feature sections of a perf.data file, which describe the machine and the recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collectors/perf_data/attribute.h"
#include "collectors/perf_data/byte_cursor.h"

namespace crosstalk::perf_data {

enum class Feature : std::uint32_t {
  tracing_data = 1,
  build_id = 2,
  hostname = 3,
  os_release = 4,
  version = 5,
  architecture = 6,
  processors = 7,
  cpu_description = 8,
  cpu_id = 9,
  total_memory = 10,
  command_line = 11,
  event_description = 12,
  cpu_topology = 13,
  numa_topology = 14,
  branch_stack = 15,
  pmu_mappings = 16,
  group_description = 17,
  auxtrace = 18,
  stat = 19,
  cache = 20,
  sample_time = 21,
  memory_topology = 22,
  clock_id = 23,
  directory_format = 24,
  bpf_program_info = 25,
  bpf_types = 26,
  compression = 27,
  cpu_pmu_capabilities = 28,
  clock_data = 29,
  hybrid_topology = 30,
  pmu_capabilities = 31,
};

/// "BUILD_ID", ...; "40" for one that is not known.
[[nodiscard]] std::string feature_name(std::uint32_t feature);

struct EventDescription {
  Attribute attribute;
  std::string name;
  std::vector<std::uint64_t> ids;
};

struct CpuPlace {
  std::uint32_t core = 0, socket = 0;
  std::uint32_t die = 0;  // if `has_dies`
};

struct CpuTopology {
  std::vector<std::string> cores;    // lists of the processors of a socket
  std::vector<std::string> threads;  // lists of the processors of a core
  std::vector<std::string> dies;
  std::vector<CpuPlace> places;  // by processor; empty: old files do not say
  bool has_dies = false;
};

struct NumaNode {
  std::uint32_t number = 0;
  std::uint64_t total_kib = 0, free_kib = 0;
  std::string cpus;
};

struct Pmu {
  std::uint32_t type = 0;
  std::string name;
};

struct EventGroup {
  std::string name;
  std::uint32_t leader = 0, members = 0;
};

struct Cache {
  std::uint32_t level = 0, line_bytes = 0, sets = 0, ways = 0;
  std::string type, size, cpus;
};

struct MemoryNode {
  std::uint64_t node = 0, blocks = 0;
};

struct ClockData {
  std::uint32_t clock_id = 0;
  std::uint64_t wall_ns = 0, clock_ns = 0;  // one moment on both
};

struct Compression {
  std::uint32_t type = 0, level = 0, ratio = 0, mmap_bytes = 0;
};

struct HybridPmu {
  std::string pmu, cpus;
};

struct PmuCapabilities {
  std::string pmu;  // empty: the processor's
  std::vector<std::pair<std::string, std::string>> values;
};

/// Fields that are missing from the file are empty, 0 or absent.
struct Features {
  std::string hostname, os_release, version, architecture, cpu_description, cpu_id;
  std::uint32_t cpus_available = 0, cpus_online = 0;
  std::uint64_t total_memory_kib = 0;
  std::vector<std::string> command_line;
  std::vector<EventDescription> events;
  std::optional<CpuTopology> topology;
  std::vector<NumaNode> numa;
  std::vector<Pmu> pmus;
  std::vector<EventGroup> groups;
  std::vector<Cache> caches;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> sample_times;  // first and last
  std::uint64_t memory_block_bytes = 0;
  std::vector<MemoryNode> memory;
  std::optional<std::uint64_t> clock_resolution_ns;
  std::optional<ClockData> clock;
  std::optional<Compression> compression;
  std::vector<HybridPmu> hybrid;
  std::vector<PmuCapabilities> capabilities;
  std::optional<std::uint64_t> directory_version;
  std::vector<std::uint32_t> present;  // all that the file has, understood or not
};

/// Adds the contents `bytes` of `feature`. Skips build ids, which are records. Errors name the damaged feature.
[[nodiscard]] Result<void> add_feature(std::uint32_t feature, std::span<const std::byte> bytes, ByteOrder order,
                                       Features& features);

}  // namespace crosstalk::perf_data
