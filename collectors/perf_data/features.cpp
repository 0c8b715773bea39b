// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_data/features.h"

#include <array>

namespace crosstalk::perf_data {
namespace {

constexpr std::array<const char*, 32> feature_names = {
    "RESERVED",      "TRACING_DATA", "BUILD_ID",        "HOSTNAME",   "OSRELEASE",     "VERSION",    "ARCH",
    "NRCPUS",        "CPUDESC",      "CPUID",           "TOTAL_MEM",  "CMDLINE",       "EVENT_DESC", "CPU_TOPOLOGY",
    "NUMA_TOPOLOGY", "BRANCH_STACK", "PMU_MAPPINGS",    "GROUP_DESC", "AUXTRACE",      "STAT",       "CACHE",
    "SAMPLE_TIME",   "MEM_TOPOLOGY", "CLOCKID",         "DIR_FORMAT", "BPF_PROG_INFO", "BPF_BTF",    "COMPRESSED",
    "CPU_PMU_CAPS",  "CLOCK_DATA",   "HYBRID_TOPOLOGY", "PMU_CAPS"};

std::string take_string(ByteCursor& bytes) {
  const auto size = bytes.take<std::uint32_t>();
  return std::string(bytes.take_text(size));
}

/// Calls `take` as often as the number says that comes first, or until the bytes are used up.
template <class Take>
void for_each(ByteCursor& bytes, const Take& take) {
  const auto count = bytes.take<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && bytes.whole(); ++i) {
    take();
  }
}

std::vector<std::string> take_strings(ByteCursor& bytes) {
  std::vector<std::string> strings;
  for_each(bytes, [&] { strings.push_back(take_string(bytes)); });
  return strings;
}

Result<void> take_events(ByteCursor& bytes, Features& features) {
  Result<void> result;
  const auto count = bytes.take<std::uint32_t>();
  const auto attribute_bytes = bytes.take<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && bytes.whole(); ++i) {
    ByteCursor own(bytes.take_bytes(attribute_bytes), bytes.order());
    const auto attribute = take_attribute(own, attribute_bytes);
    if (!attribute) {
      return tl::unexpected<Error>(attribute.error());
    }
    EventDescription event;
    event.attribute = *attribute;
    const auto ids = bytes.take<std::uint32_t>();
    event.name = take_string(bytes);
    const WordView words = bytes.take_words(ids);
    for (std::size_t id = 0; id < words.size(); ++id) {
      event.ids.push_back(words[id]);
    }
    features.events.push_back(std::move(event));
  }
  return result;
}

void take_topology(ByteCursor& bytes, Features& features) {
  CpuTopology topology;
  topology.cores = take_strings(bytes);
  topology.threads = take_strings(bytes);
  constexpr std::size_t of_place = 8;  // core and socket
  if (bytes.whole() && bytes.rest() > 0 && features.cpus_available <= bytes.rest() / of_place) {
    for (std::uint32_t cpu = 0; cpu < features.cpus_available; ++cpu) {
      CpuPlace place;
      place.core = bytes.take<std::uint32_t>();
      place.socket = bytes.take<std::uint32_t>();
      topology.places.push_back(place);
    }
    if (bytes.rest() > 0) {
      topology.dies = take_strings(bytes);
      topology.has_dies = bytes.whole();
      for (CpuPlace& place : topology.places) {
        place.die = bytes.take<std::uint32_t>();
      }
    }
  }
  features.topology = std::move(topology);
}

void take_caches(ByteCursor& bytes, Features& features) {
  bytes.take<std::uint32_t>();  // version
  for_each(bytes, [&] {
    Cache cache;
    cache.level = bytes.take<std::uint32_t>();
    cache.line_bytes = bytes.take<std::uint32_t>();
    cache.sets = bytes.take<std::uint32_t>();
    cache.ways = bytes.take<std::uint32_t>();
    cache.type = take_string(bytes);
    cache.size = take_string(bytes);
    cache.cpus = take_string(bytes);
    features.caches.push_back(std::move(cache));
  });
}

void take_memory(ByteCursor& bytes, Features& features) {
  constexpr std::uint64_t bits = 64;
  bytes.take<std::uint64_t>();  // version
  features.memory_block_bytes = bytes.take<std::uint64_t>();
  const auto nodes = bytes.take<std::uint64_t>();
  for (std::uint64_t i = 0; i < nodes && bytes.whole(); ++i) {
    MemoryNode node;
    node.node = bytes.take<std::uint64_t>();
    node.blocks = bytes.take<std::uint64_t>();
    bytes.take_words(node.blocks / bits + (node.blocks % bits != 0 ? 1 : 0));
    features.memory.push_back(node);
  }
}

void take_numa(ByteCursor& bytes, Features& features) {
  for_each(bytes, [&] {
    NumaNode node;
    node.number = bytes.take<std::uint32_t>();
    node.total_kib = bytes.take<std::uint64_t>();
    node.free_kib = bytes.take<std::uint64_t>();
    node.cpus = take_string(bytes);
    features.numa.push_back(std::move(node));
  });
}

std::vector<std::pair<std::string, std::string>> take_pairs(ByteCursor& bytes) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for_each(bytes, [&] {
    std::string name = take_string(bytes);
    pairs.emplace_back(std::move(name), take_string(bytes));
  });
  return pairs;
}

void take_compression(ByteCursor& bytes, Features& features) {
  bytes.take<std::uint32_t>();  // version
  Compression compression;
  compression.type = bytes.take<std::uint32_t>();
  compression.level = bytes.take<std::uint32_t>();
  compression.ratio = bytes.take<std::uint32_t>();
  compression.mmap_bytes = bytes.take<std::uint32_t>();
  features.compression = compression;
}

void take_groups(ByteCursor& bytes, Features& features) {
  for_each(bytes, [&] {
    EventGroup group;
    group.name = take_string(bytes);
    group.leader = bytes.take<std::uint32_t>();
    group.members = bytes.take<std::uint32_t>();
    features.groups.push_back(std::move(group));
  });
}

void take_clock(ByteCursor& bytes, Features& features) {
  bytes.take<std::uint32_t>();  // version
  ClockData clock;
  clock.clock_id = bytes.take<std::uint32_t>();
  clock.wall_ns = bytes.take<std::uint64_t>();
  clock.clock_ns = bytes.take<std::uint64_t>();
  features.clock = clock;
}

/// Features of one number or text.
void take_plain(Feature feature, ByteCursor& bytes, Features& features) {
  switch (feature) {
    case Feature::hostname:
      features.hostname = take_string(bytes);
      break;
    case Feature::os_release:
      features.os_release = take_string(bytes);
      break;
    case Feature::version:
      features.version = take_string(bytes);
      break;
    case Feature::architecture:
      features.architecture = take_string(bytes);
      break;
    case Feature::cpu_description:
      features.cpu_description = take_string(bytes);
      break;
    case Feature::cpu_id:
      features.cpu_id = take_string(bytes);
      break;
    case Feature::processors:
      features.cpus_available = bytes.take<std::uint32_t>();
      features.cpus_online = bytes.take<std::uint32_t>();
      break;
    case Feature::total_memory:
      features.total_memory_kib = bytes.take<std::uint64_t>();
      break;
    case Feature::command_line:
      features.command_line = take_strings(bytes);
      break;
    case Feature::clock_id:
      features.clock_resolution_ns = bytes.take<std::uint64_t>();
      break;
    case Feature::directory_format:
      features.directory_version = bytes.take<std::uint64_t>();
      break;
    case Feature::sample_time: {
      const auto first = bytes.take<std::uint64_t>();
      features.sample_times = {first, bytes.take<std::uint64_t>()};
      break;
    }
    default:
      break;  // of no use here; `present` has it
  }
}

Result<void> take(Feature feature, ByteCursor& bytes, Features& features) {
  switch (feature) {
    case Feature::event_description:
      return take_events(bytes, features);
    case Feature::cpu_topology:
      take_topology(bytes, features);
      break;
    case Feature::numa_topology:
      take_numa(bytes, features);
      break;
    case Feature::pmu_mappings:
      for_each(bytes, [&] {
        const auto type = bytes.take<std::uint32_t>();
        features.pmus.push_back({type, take_string(bytes)});
      });
      break;
    case Feature::group_description:
      take_groups(bytes, features);
      break;
    case Feature::cache:
      take_caches(bytes, features);
      break;
    case Feature::memory_topology:
      take_memory(bytes, features);
      break;
    case Feature::compression:
      take_compression(bytes, features);
      break;
    case Feature::cpu_pmu_capabilities:
      features.capabilities.push_back({"", take_pairs(bytes)});
      break;
    case Feature::pmu_capabilities:
      for_each(bytes, [&] {
        auto values = take_pairs(bytes);
        features.capabilities.push_back({take_string(bytes), std::move(values)});
      });
      break;
    case Feature::hybrid_topology:
      for_each(bytes, [&] {
        std::string pmu = take_string(bytes);
        features.hybrid.push_back({std::move(pmu), take_string(bytes)});
      });
      break;
    case Feature::clock_data:
      take_clock(bytes, features);
      break;
    default:
      take_plain(feature, bytes, features);
      break;
  }
  return {};
}

}  // namespace

std::string feature_name(std::uint32_t feature) {
  return feature < feature_names.size() ? feature_names[feature] : std::to_string(feature);
}

Result<void> add_feature(std::uint32_t feature, std::span<const std::byte> bytes, ByteOrder order, Features& features) {
  features.present.push_back(feature);
  ByteCursor fields(bytes, order);
  Result<void> taken = take(static_cast<Feature>(feature), fields, features);
  if (taken && !fields.whole()) {
    taken = fail(ErrorCode::corrupt, "it is cut off after " + std::to_string(bytes.size()) + " bytes");
  }
  if (!taken) {
    return fail(ErrorCode::corrupt, "feature " + feature_name(feature) + ": " + taken.error().message);
  }
  return {};
}

}  // namespace crosstalk::perf_data
