// SPDX-License-Identifier: Apache-2.0
#include "attribution/memory/memory_view.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "attribution/memory/access_sums.h"
#include "attribution/memory/memory_rows.h"
#include "attribution/memory/memory_sites.h"
#include "attribution/memory/sampled_lines.h"
#include "attribution/memory/sampled_sharing.h"
#include "attribution/memory/shared_lines.h"
#include "profile/topology.h"

namespace crosstalk::attribution {
namespace {

std::string reason_for_nothing(const MemoryInputs& inputs) {
  if (profile::is_imported(inputs.profile.session())) {
    return "no sample of the recording is of a load or a store, as those of 'perf mem record' and 'perf c2c record' "
           "are";
  }
  return "samples are of a clock, which tells neither how long an access took nor where it found its data";
}

std::vector<PlacedSample> placed(const MemoryInputs& inputs, MemorySites& sites) {
  std::vector<PlacedSample> samples;
  samples.reserve(inputs.samples.all().size());
  for (const MemorySample& sample : inputs.samples.all()) {
    if (inputs.view.knows(sample.thread)) {
      samples.push_back({&sample, decode_data_source(sample.data_source), sites.of(sample)});
    }
  }
  return samples;
}

std::vector<MemoryEvent> events_of(std::span<const PlacedSample> samples, std::span<const profile::EventRow> rows) {
  std::map<std::uint32_t, std::uint64_t> counts;
  for (const PlacedSample& each : samples) {
    ++counts[each.sample->event.value];
  }
  std::vector<MemoryEvent> events;
  for (const auto& [event, count] : counts) {
    if (event != 0 && event <= rows.size()) {
      const profile::EventRow& row = rows[event - 1];
      events.push_back({row.name, count, row.least_latency_cycles, row.at_access, profile::is_filtered(row)});
    } else {
      events.push_back({"the hardware source", count, 0, true});
    }
  }
  return events;
}

Result<LineRows::Chains> chains_of(const profile::ProfileReader& profile,
                                   const std::unordered_set<std::uint32_t>& wanted) {
  LineRows::Chains chains;
  if (wanted.empty()) {
    return chains;
  }
  const auto read = profile.for_each_call_chain([&](const profile::CallChainRow& row) {
    if (wanted.contains(row.id.value)) {
      chains[row.id.value] = row.addresses;
    }
  });
  return read ? Result<LineRows::Chains>(std::move(chains)) : tl::unexpected<Error>(read.error());
}

void add_limits_of_events(const Memory& memory, std::vector<std::string>& limits) {
  std::size_t of_loads = 0;
  for (const MemoryEvent& event : memory.events) {
    if (event.least_latency_cycles > 1) {
      limits.push_back(event.name + " samples only loads that take " + std::to_string(event.least_latency_cycles) +
                       " cycles and more: shares, quantiles and costs leave out the quicker ones");
    }
    if (event.filtered && event.least_latency_cycles == 0) {
      limits.push_back(event.name +
                       " samples only what misses the L3 cache: the rest is left out, also what threads of "
                       "one L3 cache exchange");
    }
    if (!event.at_access) {
      limits.emplace_back("samples of " + event.name +
                          " are not precise: the instruction shown may be one behind that of the access");
    }
    of_loads += event.name.find("store") == std::string::npos ? 1 : 0;
  }
  if (of_loads > 1) {
    limits.push_back(std::to_string(of_loads) +
                     " events sampled accesses: sums have an access twice that two of them count");
  }
}

void add_limits_of_sharing(const Memory& memory, std::vector<std::string>& limits) {
  const SampledSharing& sharing = memory.sharing;
  if (memory.totals.stores == 0) {
    limits.emplace_back("no store was sampled: which thread had modified a line is not known");
  }
  if (!sharing.hitm_known) {
    limits.emplace_back("the samples do not tell whether a line was modified in another cache (HITM)");
  }
  if (!sharing.pairs.empty()) {
    limits.emplace_back(
        "who communicates is estimated from samples near in time, not from watched accesses: nobody saw which store a "
        "load came after. Each load that found its line modified elsewhere is shared out among the threads whose "
        "sampled stores to that line are within 10 ms; intervals are of sampling alone, not of this choice");
  }
}

void add_limits(const MemoryInputs& inputs, std::span<const PlacedSample> samples, Memory& memory) {
  std::vector<std::string>& limits = memory.limits;
  add_limits_of_events(memory, limits);
  if (memory.totals.cost_cycles) {
    limits.push_back(
        std::string("the cost of loads is the sum of their latencies: those that overlap count each, so that it may be "
                    "more than the time of the threads") +
        (profile::is_imported(inputs.profile.session()) && memory.totals.cost_s
             ? "; cycles are turned into seconds at the processor's nominal frequency"
             : ""));
  }
  add_limits_of_sharing(memory, limits);
  std::uint64_t in_kernel = 0;
  std::set<std::uint32_t> processes;
  for (const PlacedSample& each : samples) {
    in_kernel += each.sample->in_kernel ? 1 : 0;
    processes.insert(inputs.view.threads()[each.sample->thread.value].process.value);
  }
  if (in_kernel > 0) {
    limits.push_back(std::to_string(in_kernel) +
                     " samples are in the kernel: their code is the call that led there, where that is known");
  }
  if (processes.size() > 1 && inputs.profile.shared_mappings().empty()) {
    limits.emplace_back(
        "memory that several processes share is a line of its own in each: what is mapped is not known");
  }
  if (inputs.samples.others() > 0) {
    limits.push_back(std::to_string(inputs.samples.others()) +
                     " samples of the hardware are of no load or store, or do not say: left out here");
  }
}

}  // namespace

Result<Memory> memory_view(const MemoryInputs& inputs, std::size_t max_rows) {
  Memory memory;
  const profile::Session& session = inputs.profile.session();
  MemorySites sites(inputs.view, inputs.loops);
  const std::vector<PlacedSample> samples = placed(inputs, sites);
  memory.unknown = samples.empty() ? reason_for_nothing(inputs) : "";
  if (samples.empty()) {
    return memory;
  }
  const std::uint32_t cycle_ps = session.core.cycle_ps;
  AccessSums totals;
  for (const PlacedSample& each : samples) {
    totals.add(*each.sample, each.source);
  }
  memory.totals = totals.finish(cycle_ps);
  memory.events = events_of(samples, inputs.profile.events());
  memory.sources = source_rows(samples);
  LineRows line_rows(samples, sites, max_rows);
  const auto chains = chains_of(inputs.profile, line_rows.wanted_chains());
  if (!chains) {
    return tl::unexpected<Error>(chains.error());
  }
  const auto keep = [](auto cut, auto& rows, std::uint64_t& all) {
    rows = std::move(cut.rows);
    all = cut.all;
  };
  MemoryObjects objects(inputs.objects);
  keep(line_rows.finish(*chains, inputs.view, cycle_ps), memory.lines, memory.all_lines);
  keep(memory_objects(samples, objects, max_rows, cycle_ps), memory.objects, memory.all_objects);
  keep(memory_loops(samples, sites, inputs.loops, max_rows, cycle_ps), memory.loops, memory.all_loops);
  const SampledLines lines(samples, inputs.view, inputs.shared, session.line_bytes);
  const auto topology = profile::Topology::parse(session.topology);
  const profile::Topology unknown;
  SharedLines shared =
      shared_lines(lines, {inputs.view, sites, objects, topology ? *topology : unknown, cycle_ps}, max_rows);
  memory.on_shared_lines = shared.all;
  keep(std::move(shared.lines), memory.shared_lines, memory.all_shared_lines);
  memory.sharing = sampled_sharing(lines);
  add_limits(inputs, samples, memory);
  return memory;
}

}  // namespace crosstalk::attribution
