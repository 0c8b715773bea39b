// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/memory_events.h"

#include <algorithm>

namespace crosstalk::collectors {
namespace {

constexpr KernelVersion weights_in_parts{5, 12};  // PERF_SAMPLE_WEIGHT_STRUCT
constexpr KernelVersion ibs_of_threads{6, 2};     // before, IBS events are a processor's only

std::uint64_t fields_of(const MachineDescription& machine) {
  const bool parts = machine.kernel && *machine.kernel >= weights_in_parts;
  return PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
         PERF_SAMPLE_DATA_SRC | static_cast<std::uint64_t>(parts ? PERF_SAMPLE_WEIGHT_STRUCT : PERF_SAMPLE_WEIGHT);
}

perf_event_attr attribute(const PmuUnit& unit, const EventConfig& config) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = unit.type;
  attr.config = config[0];
  attr.config1 = config[1];
  attr.config2 = config[2];
  attr.disabled = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  return attr;
}

Result<perf_event_attr> named(const PmuUnit& unit, const std::string& name, const std::string& more) {
  const auto config = encode_terms(unit.format, unit.events.at(name) + more);
  if (!config) {
    return fail(ErrorCode::unsupported, unit.name + "/" + name + "/: " + config.error().message);
  }
  return attribute(unit, *config);
}

Result<MemoryEvent> precise_event(const MachineDescription& machine, const PmuUnit& unit, Accesses accesses,
                                  const MemorySampling& wanted) {
  MemoryEvent event;
  event.unit = unit.name;
  event.name = accesses == Accesses::loads ? "mem-loads" : "mem-stores";
  event.accesses = accesses;
  const bool by_latency = accesses == Accesses::loads && unit.format.contains("ldlat");
  const auto attr = named(unit, event.name, by_latency ? ",ldlat=" + std::to_string(wanted.least_latency) : "");
  if (!attr) {
    return tl::unexpected<Error>(attr.error());
  }
  event.attr = *attr;
  event.least_latency = by_latency && wanted.least_latency > every_load ? wanted.least_latency : 0;
  event.attr.sample_period = accesses == Accesses::loads ? wanted.load_period : wanted.store_period;
  event.attr.sample_type = fields_of(machine);
  event.attr.precise_ip = static_cast<unsigned>(unit.max_precise()) & 3U;
  if (accesses == Accesses::loads) {
    const auto leader = leader_of_loads(unit);
    if (!leader) {
      return tl::unexpected<Error>(leader.error());
    }
    event.leader = *leader;
    event.attr.disabled = event.leader ? 0 : 1;  // the leader switches both
  }
  return event;
}

std::string why_no_unit(const MachineDescription& machine) {
  return machine.virtual_machine ? "no CPU PMU: start the virtual machine with one (qemu: -cpu host,pmu=on)"
                                 : "no CPU PMU in /sys/bus/event_source/devices";
}

/// Why a unit's accesses cannot be sampled; empty: they can.
std::string lack_of(const PmuUnit& unit) {
  constexpr int least_precise = 2;
  if (unit.max_precise() < least_precise) {
    return unit.name + " takes precise_ip up to " + std::to_string(unit.max_precise()) + ", 2 is needed";
  }
  for (const char* const event : {"mem-loads", "mem-stores"}) {
    if (!unit.events.contains(event)) {
      return unit.name + " has no event " + event;
    }
  }
  return {};
}

}  // namespace

Result<std::optional<perf_event_attr>> leader_of_loads(const PmuUnit& unit) {
  if (!unit.events.contains("mem-loads-aux")) {
    return std::optional<perf_event_attr>();
  }
  const auto leader = named(unit, "mem-loads-aux", "");
  return leader ? Result<std::optional<perf_event_attr>>(*leader) : tl::unexpected<Error>(leader.error());
}

void complete(const MachineDescription& machine, perf_event_attr& attr) {
  attr.size = sizeof attr;
  attr.disabled = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.sample_type = fields_of(machine);
  if (attr.type == PERF_TYPE_SOFTWARE || attr.type == PERF_TYPE_TRACEPOINT) {
    // If their samples contain the period, the kernel takes one at each occurrence (perf_swevent_event()).
    attr.sample_type &= ~std::uint64_t{PERF_SAMPLE_PERIOD};
  }
}

Result<std::vector<MemoryEvent>> pebs_events(const MachineDescription& machine, const MemorySampling& wanted) {
  if (machine.vendor != "GenuineIntel") {
    return fail(ErrorCode::unsupported, "not an Intel processor");
  }
  std::vector<MemoryEvent> events;
  std::string lack = why_no_unit(machine);
  for (const PmuUnit& unit : machine.units) {
    if (!is_core_unit(unit.name)) {
      continue;
    }
    // Threads move between the kinds of cores: samples of one kind alone would be a part that nobody knows.
    if (lack = lack_of(unit); !lack.empty()) {
      return fail(ErrorCode::unsupported, lack);
    }
    for (const Accesses accesses : {Accesses::loads, Accesses::stores}) {
      auto event = precise_event(machine, unit, accesses, wanted);
      if (!event) {
        return tl::unexpected<Error>(event.error());
      }
      events.push_back(std::move(*event));
    }
  }
  if (events.empty()) {
    return fail(ErrorCode::unsupported, lack);
  }
  return events;
}

Result<std::vector<MemoryEvent>> ibs_events(const MachineDescription& machine, const MemorySampling& wanted) {
  if (machine.vendor != "AuthenticAMD" && machine.vendor != "HygonGenuine") {
    return fail(ErrorCode::unsupported, "not an AMD processor");
  }
  const PmuUnit* const unit = machine.unit("ibs_op");
  if (unit == nullptr) {
    return fail(ErrorCode::unsupported, machine.virtual_machine ? "no ibs_op: virtual machines have none"
                                                                : "no ibs_op in /sys/bus/event_source/devices");
  }
  if (!unit->format.contains("cnt_ctl")) {
    return fail(ErrorCode::unsupported, "ibs_op cannot count micro-ops, only cycles");
  }
  MemoryEvent event;
  event.unit = unit->name;
  event.name = "ibs_op";
  event.source = profile::SourceKind::ibs;
  event.weight_unit = profile::WeightUnit::micro_ops;
  event.each_cpu = !machine.kernel || *machine.kernel < ibs_of_threads;
  const bool filters = unit->format.contains("swfilt");
  event.kernel_excluded = filters;
  const auto config = encode_terms(unit->format, filters ? "cnt_ctl=1,swfilt=1" : "cnt_ctl=1");
  if (!config) {
    return fail(ErrorCode::unsupported, "ibs_op: " + config.error().message);
  }
  event.attr = attribute(*unit, *config);
  event.attr.exclude_kernel = filters ? 1 : 0;  // without the kernel's filter, IBS refuses to leave out anything
  event.attr.exclude_hv = 0;
  constexpr std::uint64_t step = 16;     // the counter's lowest four bits are not set
  constexpr std::uint64_t least = 0x90;  // the kernel's
  event.attr.sample_period = std::max(wanted.op_period / step * step, least);
  event.attr.sample_type = fields_of(machine) | PERF_SAMPLE_RAW;
  event.period_random = true;  // the hardware varies the lowest bits of the count
  return std::vector<MemoryEvent>{event};
}

Result<std::vector<MemoryEvent>> ibs_module_events(const MachineDescription& machine, const MemorySampling& wanted) {
  if (!machine.ibs_module) {
    return tl::unexpected<Error>(machine.ibs_module.error());
  }
  const IbsModule& module = *machine.ibs_module;
  MemoryEvent event;
  event.unit = "crosstalk_ibs";
  event.name = "ibs_op";
  event.source = profile::SourceKind::ibs_kmod;
  event.weight_unit = module.counts_ops ? profile::WeightUnit::micro_ops : profile::WeightUnit::cycles;
  event.attr.sample_period = std::clamp(wanted.op_period, module.least_period, module.longest_period);
  event.period_random = true;  // the module draws each interval
  return std::vector<MemoryEvent>{event};
}

std::vector<SourceStep> sources_of(const MachineDescription& machine, const MemorySampling& wanted) {
  std::vector<SourceStep> steps;
  const auto add = [&](profile::SourceKind source, Result<std::vector<MemoryEvent>> events) {
    steps.push_back(events ? SourceStep{source, std::move(*events), ""}
                           : SourceStep{source, {}, std::move(events.error().message)});
  };
  const bool amd = machine.vendor == "AuthenticAMD" || machine.vendor == "HygonGenuine";
  if (amd) {
    add(profile::SourceKind::ibs, ibs_events(machine, wanted));
    if (machine.ibs_module && machine.ibs_module->emulated) {
      add(profile::SourceKind::ibs_kmod,
          fail(ErrorCode::unsupported, std::string(ibs_module_device) + " only emulates IBS, for tests"));
    } else {
      add(profile::SourceKind::ibs_kmod, ibs_module_events(machine, wanted));
    }
  } else {
    add(profile::SourceKind::pebs, pebs_events(machine, wanted));
  }
  steps.push_back({profile::SourceKind::clock, {}, ""});
  return steps;
}

}  // namespace crosstalk::collectors
