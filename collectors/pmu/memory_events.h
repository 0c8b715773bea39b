// SPDX-License-Identifier: Apache-2.0
// Chooses the events that sample a machine's memory accesses, and their attributes. Pure.
//
// Intel, from Sandy Bridge on: precise events of loads (by latency) and of stores, one pair a core unit, with a period
// each. AMD: instruction-based sampling (ibs_op), which tags a micro-op and reports its access, if it makes one; it
// counts micro-ops, so that a sample stands for micro-ops until those without an access are taken out.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collectors/memory_samples/sampled_event.h"
#include "collectors/pmu/machine_description.h"
#include "profile/records.h"

namespace crosstalk::collectors {

struct MemorySampling {
  std::uint64_t load_period = 20'000;   ///< loads, 1 or more
  std::uint64_t store_period = 20'000;  ///< stores, 1 or more
  std::uint64_t op_period = 262'144;    ///< micro-ops; rounded down to a value that the unit takes, 144 or more
  std::uint32_t least_latency = 3;      ///< cycles: loads that took less are not sampled; 3 is the least of all units
};

/// Loads that took so few cycles are all that there are.
inline constexpr std::uint32_t every_load = 3;

struct MemoryEvent {
  std::string unit;  ///< "cpu_core"
  std::string name;  ///< "mem-loads"
  Accesses accesses = Accesses::both;
  perf_event_attr attr{};
  /// An event that has to lead the group, or the kernel refuses this one (loads of some units).
  std::optional<perf_event_attr> leader;
  profile::SourceKind source = profile::SourceKind::pebs;
  profile::WeightUnit weight_unit = profile::WeightUnit::accesses;
  bool period_random = false;  ///< the hardware varies the period; else the sampler has to
  bool each_cpu = false;  ///< the kernel takes it for a processor only, not for a thread: others' samples are dropped
  std::uint32_t least_latency = 0;  ///< cycles: loads that took less are not sampled; 0: all are
  std::uint8_t number = 0;          ///< in its session, from 1 on; 0: it has none
  bool kernel_excluded = true;      ///< else samples in kernel mode come, too, and are dropped

  /// The meaning of its samples.
  operator SampledEvent() const {  // NOLINT(google-explicit-constructor): it is one, and more
    const bool of_kernel = attr.type == PERF_TYPE_SOFTWARE || attr.type == PERF_TYPE_TRACEPOINT;
    return {source, weight_unit, accesses, period_random, of_kernel};
  }
};

/// True if an event of an Intel core counts retired loads or stores, each of which is one access. `config`: its event
/// code in the lowest eight bits (Intel SDM, volume 3B: MEM_TRANS_RETIRED, MEM_INST_RETIRED or MEM_UOPS_RETIRED,
/// MEM_LOAD_RETIRED, MEM_LOAD_L3_HIT_RETIRED, MEM_LOAD_L3_MISS_RETIRED).
[[nodiscard]] constexpr bool counts_intel_accesses(std::uint64_t config) {
  const std::uint64_t code = config & 0xff;
  return code == 0xcd || (code >= 0xd0 && code <= 0xd3);
}

/// Returns the least latency, in cycles, of an Intel event that takes it from config1 (the kernel's ldlat:
/// MEM_TRANS_RETIRED.LOAD_LATENCY of large cores, MEM_UOPS_RETIRED.LOAD_LATENCY of small ones); 0: it samples all that
/// it counts.
[[nodiscard]] constexpr std::uint32_t intel_least_latency(std::uint64_t config, std::uint64_t config1) {
  constexpr std::uint64_t event_and_mask = 0xffff, of_large_cores = 0x1cd, of_small_cores = 0x5d0, threshold = 0xffff;
  const std::uint64_t event = config & event_and_mask;
  return event == of_large_cores || event == of_small_cores ? static_cast<std::uint32_t>(config1 & threshold) : 0;
}

/// Returns the event that has to lead the group of a unit's event of loads, or the kernel answers ENODATA; none: no
/// leader is needed.
[[nodiscard]] Result<std::optional<perf_event_attr>> leader_of_loads(const PmuUnit& unit);

/// Completes the attributes of an event: it begins disabled, samples user mode only, and reports all that can be known
/// of each access.
void complete(const MachineDescription& machine, perf_event_attr& attr);

/// The events of Intel's core units. unsupported, with the reason: there are none, or no precise ones.
[[nodiscard]] Result<std::vector<MemoryEvent>> pebs_events(const MachineDescription& machine,
                                                           const MemorySampling& wanted = {});
/// Returns the event of AMD's ibs_op. Never sets filters by L3 misses or latency: they would lose what threads of one
/// L3 exchange.
[[nodiscard]] Result<std::vector<MemoryEvent>> ibs_events(const MachineDescription& machine,
                                                          const MemorySampling& wanted = {});

/// Returns the event of our own kernel module. The errors are those of MachineDescription::ibs_module.
[[nodiscard]] Result<std::vector<MemoryEvent>> ibs_module_events(const MachineDescription& machine,
                                                                 const MemorySampling& wanted = {});

/// One step of the choice of a source, in words: "pebs: not an Intel processor".
struct SourceStep {
  profile::SourceKind source = profile::SourceKind::clock;
  std::vector<MemoryEvent> events;  ///< empty: it cannot be had, or needs none
  std::string reason;               ///< why not; empty: it is possible
};
/// Returns the possible sources, the best first, and a reason for each impossible one; the last is the clock, which is
/// always possible. Leaves out a module that only emulates IBS: its samples must be asked for by name.
[[nodiscard]] std::vector<SourceStep> sources_of(const MachineDescription& machine, const MemorySampling& wanted = {});

}  // namespace crosstalk::collectors
