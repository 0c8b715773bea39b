// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_import/machine.h"

#include <map>
#include <vector>

#include "base/cpu_list.h"
#include "base/shell_quoted.h"
#include "profile/topology.h"

namespace crosstalk::perf_import {
namespace {

using Places = std::map<std::uint32_t, profile::CpuPlace>;

profile::CpuPlace& place_of(Places& places, std::uint32_t cpu) {
  profile::CpuPlace& place = places[cpu];
  place.cpu = cpu;
  return place;
}

void add_caches(const perf_data::Features& features, Places& places) {
  for (const perf_data::Cache& cache : features.caches) {
    const std::vector<std::uint32_t> cpus = cpus_in(cache.cpus);
    for (const std::uint32_t cpu : cpus) {
      const auto lowest = static_cast<std::int32_t>(cpus.front());
      if (cache.level == 2) {
        place_of(places, cpu).l2 = lowest;
      } else if (cache.level == 3) {
        place_of(places, cpu).l3 = lowest;
      }
    }
  }
}

std::string topology_of(const perf_data::Features& features) {
  Places places;
  for (std::uint32_t cpu = 0; cpu < features.places.size() && cpu < most_cpus; ++cpu) {
    profile::CpuPlace& place = place_of(places, cpu);
    place.core = static_cast<std::int32_t>(features.places[cpu].core);
    place.package = static_cast<std::int32_t>(features.places[cpu].socket);
  }
  add_caches(features, places);
  for (const perf_data::NumaNode& node : features.numa) {
    for (const std::uint32_t cpu : cpus_in(node.cpus)) {
      place_of(places, cpu).node = static_cast<std::int32_t>(node.number);
    }
  }
  std::vector<profile::CpuPlace> all;
  for (const auto& [cpu, place] : places) {
    all.push_back(place);
  }
  return profile::Topology(std::move(all)).text();
}

}  // namespace

void describe_machine(const perf_data::Features& features, profile::Session& session) {
  session.source = profile::imported_source;
  session.command.clear();
  for (const std::string& word : features.command_line) {
    session.command += (session.command.empty() ? "" : " ") + shell_quoted(word);
  }
  session.host = features.hostname;
  session.kernel = features.os_release;
  session.architecture = features.architecture;
  session.cpu_model = features.cpu_description;
  session.cpus = features.cpus_online;
  for (const perf_data::Cache& cache : features.caches) {
    if (cache.level == 1 && cache.line_bytes != 0) {
      session.line_bytes = cache.line_bytes;
    }
  }
  session.topology = topology_of(features);
  session.config = profile::no_settings();
}

}  // namespace crosstalk::perf_import
