// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/machine_description.h"

#include <cpuid.h>
#include <hwloc.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <string>

#include "base/proc_fields.h"

namespace crosstalk::collectors::calibration {
namespace {

struct Registers {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

/// All 0 when the processor has no such leaf.
Registers cpuid(std::uint32_t leaf) {
  Registers r;
  static_cast<void>(__get_cpuid(leaf, &r.eax, &r.ebx, &r.ecx, &r.edx));
  return r;
}

void append(std::string& text, std::uint32_t word) {
  std::array<char, sizeof(word)> bytes{};
  std::memcpy(bytes.data(), &word, sizeof(word));
  text.append(bytes.data(), bytes.size());
}

std::string before_zero(const std::string& text) { return text.substr(0, text.find('\0')); }

std::string vendor() {
  const Registers r = cpuid(0);
  std::string text;
  for (const std::uint32_t word : {r.ebx, r.edx, r.ecx}) {
    append(text, word);
  }
  return before_zero(text);
}

std::string brand() {
  std::string text;
  for (std::uint32_t leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    const Registers r = cpuid(leaf);
    for (const std::uint32_t word : {r.eax, r.ebx, r.ecx, r.edx}) {
      append(text, word);
    }
  }
  const std::string name = before_zero(text);
  const std::size_t begin = name.find_first_not_of(' ');
  return begin == std::string::npos ? "" : name.substr(begin, name.find_last_not_of(' ') - begin + 1);
}

/// Returns the kernel's name of the processor. In some virtual machines an instruction of user mode reports the host's
/// processor, and the kernel was given another one.
std::string name() {
  const std::string told = processor_field("model name");
  return told.empty() ? brand() : told;
}

/// Returns the processor's identity after Intel's manual (CPUID, leaf 1) and AMD's: the extended fields count if the
/// base family is 15, the extended model for Intel's family 6, too.
models::Identity identity() {
  models::Identity found;
  found.vendor = vendor();
  const Registers r = cpuid(1);
  const std::uint32_t base_family = (r.eax >> 8U) & 0xfU;
  found.stepping = r.eax & 0xfU;
  found.family = base_family == 0xf ? base_family + ((r.eax >> 20U) & 0xffU) : base_family;
  found.model = (r.eax >> 4U) & 0xfU;
  if (base_family == 0xf || base_family == 6) {
    found.model |= ((r.eax >> 16U) & 0xfU) << 4U;
  }
  found.name = name();
  found.virtual_machine = (r.ecx >> 31U) != 0;
  return found;
}

struct TopologyEnd {
  void operator()(hwloc_topology_t topology) const { ::hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyEnd>;

Result<Topology> load_topology() {
  hwloc_topology_t raw = nullptr;
  if (::hwloc_topology_init(&raw) != 0) {
    return fail(ErrorCode::system, "the machine's topology cannot be read: hwloc refuses");
  }
  Topology topology(raw);
  ::hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  ::hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (::hwloc_topology_load(raw) != 0) {
    return fail(ErrorCode::system, "the machine's topology cannot be read: hwloc finds none");
  }
  return topology;
}

/// Returns the number of the object of `type` that contains `unit`, counted over the machine; 0: not known.
std::uint32_t number_of(hwloc_topology_t topology, hwloc_obj_t unit, hwloc_obj_type_t type) {
  const hwloc_obj_t found = ::hwloc_get_ancestor_obj_by_type(topology, type, unit);
  return found != nullptr ? found->logical_index : 0;
}

std::uint32_t node_of(hwloc_obj_t unit) {
  const int node = unit->nodeset != nullptr ? ::hwloc_bitmap_first(unit->nodeset) : -1;
  return node < 0 ? 0 : static_cast<std::uint32_t>(node);
}

std::vector<models::Processor> processors_of(hwloc_topology_t topology) {
  std::vector<models::Processor> processors;
  for (hwloc_obj_t unit = nullptr; (unit = ::hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, unit)) != nullptr;) {
    processors.push_back({unit->os_index, number_of(topology, unit, HWLOC_OBJ_CORE),
                          number_of(topology, unit, HWLOC_OBJ_PACKAGE), node_of(unit)});
  }
  std::sort(processors.begin(), processors.end(), [](const auto& a, const auto& b) { return a.cpu < b.cpu; });
  return processors;
}

models::Cache cache_of(std::uint32_t level, hwloc_obj_t object) {
  models::Cache cache;
  cache.level = level;
  cache.bytes = object->attr->cache.size;
  cache.line_bytes = object->attr->cache.linesize != 0 ? object->attr->cache.linesize : 64;
  cache.ways =
      object->attr->cache.associativity > 0 ? static_cast<std::uint32_t>(object->attr->cache.associativity) : 0;
  for (int cpu = ::hwloc_bitmap_first(object->cpuset); cpu >= 0; cpu = ::hwloc_bitmap_next(object->cpuset, cpu)) {
    cache.cpus.push_back(static_cast<std::uint32_t>(cpu));
  }
  return cache;
}

std::vector<models::Cache> caches_of(hwloc_topology_t topology) {
  constexpr std::array<hwloc_obj_type_t, 3> types = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE};
  std::vector<models::Cache> caches;
  for (std::uint32_t level = 1; level <= types.size(); ++level) {
    for (hwloc_obj_t object = nullptr;
         (object = ::hwloc_get_next_obj_by_type(topology, types[level - 1], object)) != nullptr;) {
      if (object->attr->cache.size != 0) {
        caches.push_back(cache_of(level, object));
      }
    }
  }
  return caches;
}

}  // namespace

Result<models::Machine> describe_machine() {
  auto topology = load_topology();
  if (!topology) {
    return tl::unexpected<Error>(topology.error());
  }
  models::Machine machine;
  machine.identity = identity();
  machine.processors = processors_of(topology->get());
  machine.caches = caches_of(topology->get());
  machine.memory_bytes = ::hwloc_get_root_obj(topology->get())->total_memory;
  utsname names{};
  if (::uname(&names) == 0) {
    machine.host = names.nodename;
    machine.kernel = names.release;
  }
  return machine;
}

std::vector<std::uint32_t> usable_processors() {
  std::vector<std::uint32_t> usable;
  // The mask must be as large as the kernel's own: it refuses smaller ones.
  for (std::uint32_t room = 1024; usable.empty() && room <= (1U << 20); room *= 4) {
    const std::size_t bytes = CPU_ALLOC_SIZE(room);
    cpu_set_t* const set = CPU_ALLOC(room);
    if (set != nullptr && ::sched_getaffinity(0, bytes, set) == 0) {
      for (std::uint32_t cpu = 0; cpu < room; ++cpu) {
        if (CPU_ISSET_S(cpu, bytes, set)) {
          usable.push_back(cpu);
        }
      }
    }
    CPU_FREE(set);
  }
  return usable;
}

std::vector<std::uint32_t> one_of_each_core(const models::Machine& machine, const std::vector<std::uint32_t>& usable) {
  std::set<std::uint32_t> cores;
  std::vector<std::uint32_t> chosen;
  for (const models::Processor& processor : machine.processors) {
    if (std::binary_search(usable.begin(), usable.end(), processor.cpu) && cores.insert(processor.core).second) {
      chosen.push_back(processor.cpu);
    }
  }
  return chosen;
}

unsigned sharers(const models::Machine& machine, std::uint32_t level, const std::vector<std::uint32_t>& cpus) {
  for (const models::Cache& cache : machine.caches) {
    if (cache.level == level && std::binary_search(cache.cpus.begin(), cache.cpus.end(), cpus.front())) {
      return static_cast<unsigned>(std::count_if(cpus.begin(), cpus.end(), [&](std::uint32_t cpu) {
        return std::binary_search(cache.cpus.begin(), cache.cpus.end(), cpu);
      }));
    }
  }
  return 1;
}

}  // namespace crosstalk::collectors::calibration
