// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_data/features.h"

#include <algorithm>
#include <iterator>

namespace crosstalk::perf_data {
namespace {

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

template <std::string Features::*field>
void take_text(ByteCursor& bytes, Features& features) {
  features.*field = take_string(bytes);
}

void take_processors(ByteCursor& bytes, Features& features) {
  features.cpus_available = bytes.take<std::uint32_t>();
  features.cpus_online = bytes.take<std::uint32_t>();
}

void take_command_line(ByteCursor& bytes, Features& features) { features.command_line = take_strings(bytes); }

/// The names of events; their attributes and ids stand elsewhere, too.
void take_events(ByteCursor& bytes, Features& features) {
  const auto count = bytes.take<std::uint32_t>();
  const auto attribute_bytes = bytes.take<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && bytes.whole(); ++i) {
    bytes.take_bytes(attribute_bytes);
    const auto ids = bytes.take<std::uint32_t>();
    features.event_names.push_back(take_string(bytes));
    bytes.take_words(ids);
  }
}

void take_topology(ByteCursor& bytes, Features& features) {
  take_strings(bytes);                 // lists of the processors of a socket
  take_strings(bytes);                 // and of a core
  constexpr std::size_t of_place = 8;  // core and socket
  if (!bytes.whole() || features.cpus_available > bytes.rest() / of_place) {
    return;
  }
  features.places.clear();
  for (std::uint32_t cpu = 0; cpu < features.cpus_available; ++cpu) {
    CpuPlace place;
    place.core = bytes.take<std::uint32_t>();
    place.socket = bytes.take<std::uint32_t>();
    features.places.push_back(place);
  }
}

void take_numa(ByteCursor& bytes, Features& features) {
  for_each(bytes, [&] {
    NumaNode node;
    node.number = bytes.take<std::uint32_t>();
    bytes.take<std::uint64_t>();  // KiB of memory
    bytes.take<std::uint64_t>();  // and what is free of it
    node.cpus = take_string(bytes);
    features.numa.push_back(std::move(node));
  });
}

void take_pmus(ByteCursor& bytes, Features& features) {
  for_each(bytes, [&] {
    const auto type = bytes.take<std::uint32_t>();
    features.pmus.push_back({type, take_string(bytes)});
  });
}

void take_caches(ByteCursor& bytes, Features& features) {
  bytes.take<std::uint32_t>();  // version
  for_each(bytes, [&] {
    Cache cache;
    cache.level = bytes.take<std::uint32_t>();
    cache.line_bytes = bytes.take<std::uint32_t>();
    bytes.take<std::uint64_t>();  // sets and ways
    take_string(bytes);           // type
    take_string(bytes);           // size
    cache.cpus = take_string(bytes);
    features.caches.push_back(std::move(cache));
  });
}

struct FeatureReader {
  Feature feature;
  const char* name;  // perf's
  void (*take)(ByteCursor& bytes, Features& features);
};
constexpr FeatureReader readers[] = {
    {Feature::hostname, "HOSTNAME", take_text<&Features::hostname>},
    {Feature::os_release, "OSRELEASE", take_text<&Features::os_release>},
    {Feature::architecture, "ARCH", take_text<&Features::architecture>},
    {Feature::processors, "NRCPUS", take_processors},
    {Feature::cpu_description, "CPUDESC", take_text<&Features::cpu_description>},
    {Feature::cpu_id, "CPUID", take_text<&Features::cpu_id>},
    {Feature::command_line, "CMDLINE", take_command_line},
    {Feature::event_description, "EVENT_DESC", take_events},
    {Feature::cpu_topology, "CPU_TOPOLOGY", take_topology},
    {Feature::numa_topology, "NUMA_TOPOLOGY", take_numa},
    {Feature::pmu_mappings, "PMU_MAPPINGS", take_pmus},
    {Feature::cache, "CACHE", take_caches},
};

}  // namespace

Result<void> add_feature(std::uint32_t feature, std::span<const std::byte> bytes, ByteOrder order, Features& features) {
  const auto* const reader = std::find_if(std::begin(readers), std::end(readers), [feature](const auto& known) {
    return static_cast<std::uint32_t>(known.feature) == feature;
  });
  if (reader == std::end(readers)) {
    return {};
  }
  ByteCursor fields(bytes, order);
  reader->take(fields, features);
  if (!fields.whole()) {
    return fail(ErrorCode::corrupt, std::string("feature ") + reader->name + ": it is cut off after " +
                                        std::to_string(bytes.size()) + " bytes");
  }
  return {};
}

}  // namespace crosstalk::perf_data
