// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_import/event_units.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/number.h"
#include "collectors/pmu/memory_events.h"

namespace crosstalk::perf_import {
namespace {

using profile::SourceKind;
using profile::WeightUnit;

std::string_view pmu_of(const perf_data::Event& event, const perf_data::Features& features) {
  const auto found = std::find_if(features.pmus.begin(), features.pmus.end(),
                                  [&](const perf_data::Pmu& pmu) { return pmu.type == event.attribute.type; });
  return found == features.pmus.end() ? std::string_view() : found->name;
}

bool counts_accesses(const perf_data::Event& event, std::string_view pmu, bool intel) {
  if (event.name.find("mem-loads") != std::string::npos || event.name.find("mem-stores") != std::string::npos) {
    return true;
  }
  const bool of_core = event.attribute.type == PERF_TYPE_RAW || pmu.starts_with("cpu");
  return intel && of_core && collectors::counts_intel_accesses(event.attribute.config);
}

bool counts_cycles(const perf_data::Event& event) {
  constexpr std::uint64_t event_bits = 0xffffffff;  // above them, which of a hybrid's processors
  return event.attribute.type == PERF_TYPE_HARDWARE &&
         (event.attribute.config & event_bits) == PERF_COUNT_HW_CPU_CYCLES;
}

bool counts_time(const perf_data::Event& event) {
  return event.attribute.type == PERF_TYPE_SOFTWARE &&
         (event.attribute.config == PERF_COUNT_SW_CPU_CLOCK || event.attribute.config == PERF_COUNT_SW_TASK_CLOCK);
}

// The kernel's layout of ibs_op: IbsOpL3MissOnly of AMD's manual, and the least latency (Zen 5).
constexpr std::uint64_t ibs_l3_misses_only = std::uint64_t{1} << 16U;
constexpr std::uint64_t ibs_least_latency = 0xfff;  // in config1

/// Returns the least latency of sampled accesses; 0: none, or not known.
std::uint32_t least_latency_of(const perf_data::Event& event, std::string_view pmu) {
  if (pmu == "ibs_op") {
    return static_cast<std::uint32_t>(event.attribute.config1 & ibs_least_latency);
  }
  const bool of_core = event.attribute.type == PERF_TYPE_RAW || pmu.starts_with("cpu");
  return of_core && event.attribute.precision() > 0
             ? collectors::intel_least_latency(event.attribute.config, event.attribute.config1)
             : 0;
}

/// Returns the unit of a sample of IBS: only occurrences if the processor has discarded others.
WeightUnit unit_of_ibs(const perf_data::Event& event) {
  constexpr std::uint64_t counts_micro_ops = std::uint64_t{1} << 19U;  // IbsOpCntCtl of AMD's manual
  const std::uint64_t config = event.attribute.config;
  if ((config & ibs_l3_misses_only) != 0 || (event.attribute.config1 & ibs_least_latency) != 0) {
    return WeightUnit::occurrences;
  }
  return (config & counts_micro_ops) != 0 ? WeightUnit::micro_ops : WeightUnit::cycles;
}

/// "Intel(R) Xeon(R) CPU E5-4610 v2 @ 2.30GHz" -> 2.3.
double gigahertz_in(const std::string& description) {
  const std::size_t at = description.rfind('@');
  const std::size_t unit = description.find("GHz", at == std::string::npos ? 0 : at);
  if (at == std::string::npos || unit == std::string::npos) {
    return 0;
  }
  const std::size_t begin = description.find_first_of("0123456789", at);
  return begin < unit ? leading_number<double>(description.substr(begin, unit - begin)).value_or(0) : 0;
}

}  // namespace

EventUnit unit_of(const perf_data::Event& event, const perf_data::Features& features) {
  constexpr unsigned behind_access = 2;  // from this precision on, the instruction is known
  const std::string_view pmu = pmu_of(event, features);
  const bool intel = features.cpu_id.starts_with("GenuineIntel");
  EventUnit unit;
  unit.at_access = event.attribute.precision() >= behind_access;
  if (counts_time(event)) {
    unit.source = SourceKind::clock;
    unit.unit = WeightUnit::ns;
  } else if (pmu == "ibs_op") {
    unit.source = SourceKind::ibs;
    unit.unit = unit_of_ibs(event);
    unit.at_access = true;
  } else if (counts_cycles(event)) {
    unit.unit = WeightUnit::cycles;
  } else if (counts_accesses(event, pmu, intel)) {
    unit.unit = WeightUnit::accesses;
  }
  if (unit.source == SourceKind::counter && intel && event.attribute.precision() > 0) {
    unit.source = SourceKind::pebs;
  }
  return unit;
}

profile::EventRow event_row(profile::EventId id, const perf_data::Event& event, const perf_data::Features& features) {
  const EventUnit unit = unit_of(event, features);
  profile::EventRow row;
  row.id = id;
  row.name = event.name.empty() ? perf_data::name_of(event.attribute) : event.name;
  row.source = unit.source;
  row.unit = unit.unit;
  row.period = event.attribute.is_frequency() ? 0 : event.attribute.period_or_frequency;
  row.least_latency_cycles = least_latency_of(event, pmu_of(event, features));
  row.at_access = unit.at_access;
  return row;
}

CycleTime cycle_time_of(const perf_data::Features& features) {
  constexpr double ps_at_1_ghz = 1000;
  constexpr double slowest = 0.1, fastest = 10;
  const double ghz = gigahertz_in(features.cpu_description);
  if (ghz >= slowest && ghz <= fastest) {
    return {static_cast<std::uint32_t>(std::lround(ps_at_1_ghz / ghz)), true};
  }
  return {static_cast<std::uint32_t>(ps_at_1_ghz), false};
}

}  // namespace crosstalk::perf_import
