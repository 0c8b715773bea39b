// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/named_event.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace crosstalk::collectors {
namespace {

tl::unexpected<Error> unknown(const std::string& what, std::string_view given, std::span<const std::string> known) {
  std::string nearest;
  for (const std::string& name : nearest_names(given, known)) {
    nearest += (nearest.empty() ? "; the nearest: " : ", ") + name;
  }
  return fail(ErrorCode::invalid_argument, what + nearest);
}

/// Edits from one word to the other (Levenshtein's distance); upper and lower case are the same.
std::size_t distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<std::size_t> edits(b.size() + 1);
  std::iota(edits.begin(), edits.end(), 0U);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(edits[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = edits[j + 1];
      edits[j + 1] = std::min({edits[j] + 1, edits[j + 1] + 1, changed});
    }
  }
  return edits[b.size()];
}

std::vector<std::string> unit_names(const MachineDescription& machine) {
  std::vector<std::string> names;
  for (const PmuUnit& unit : machine.units) {
    names.push_back(unit.name);
  }
  return names;
}

/// Returns the names that may stand between the slashes.
std::vector<std::string> term_names(const PmuUnit& unit) {
  std::vector<std::string> names;
  for (const auto* const of : {&unit.events, &unit.format}) {
    for (const auto& [name, text] : *of) {
      names.push_back(name);
    }
  }
  return names;
}

/// Returns the terms with the names of events replaced by their terms.
Result<std::string> spelled_out(const PmuUnit& unit, std::string_view terms) {
  std::string text;
  while (!terms.empty()) {
    const std::size_t comma = std::min(terms.find(','), terms.size());
    const std::string_view term = terms.substr(0, comma);
    const std::string_view name = term.substr(0, term.find('='));
    const auto event = unit.events.find(term);
    if (event == unit.events.end() && !unit.format.contains(name) && !name.starts_with("config")) {
      return unknown("unit " + unit.name + " has no '" + std::string(name) + "'", name, term_names(unit));
    }
    text += (text.empty() ? "" : ",") + (event == unit.events.end() ? std::string(term) : event->second);
    terms.remove_prefix(std::min(comma + 1, terms.size()));
  }
  return text;
}

/// perf's: p for each step of precision, u for user mode, which is all that is sampled.
Result<unsigned> precision_in(std::string_view modifiers) {
  constexpr std::ptrdiff_t highest = 3;
  const auto steps = std::count(modifiers.begin(), modifiers.end(), 'p');
  if (modifiers.find_first_not_of(":pu") != std::string_view::npos || steps > highest) {
    return fail(ErrorCode::invalid_argument,
                "modifier '" + std::string(modifiers) + "' is not known here; use u, and p up to three times");
  }
  return static_cast<unsigned>(steps);
}

/// Returns the kernel's unit; null: it is none of the cores', nor IBS.
const PmuUnit* unit_of(const MachineDescription& machine, const perf_event_attr& attr) {
  const auto found = std::find_if(machine.units.begin(), machine.units.end(),
                                  [&](const PmuUnit& unit) { return unit.type == attr.type; });
  return found == machine.units.end() ? nullptr : &*found;
}

/// Returns the value that was given for a term of the unit; 0: none, or the unit has none of that name.
std::uint64_t value_of(const PmuUnit& unit, std::string_view term, const perf_event_attr& attr) {
  const auto place = unit.format.find(term);
  return place == unit.format.end() ? 0 : term_value(place->second, {attr.config, attr.config1, attr.config2, 0});
}

/// Opens IBS as for memory accesses, with the terms that were named. If the processor discards samples (without an L3
/// miss, or quick), the others stand for no number of micro-operations, nor of cycles.
Result<MemoryEvent> ibs_event(const MachineDescription& machine, const perf_event_attr& attr,
                              const MemorySampling& wanted) {
  const auto usual = ibs_events(machine, wanted);
  if (!usual) {
    return tl::unexpected<Error>(usual.error());
  }
  MemoryEvent event = usual->front();
  const PmuUnit& unit = *machine.unit("ibs_op");
  event.least_latency = static_cast<std::uint32_t>(value_of(unit, "ldlat", attr));
  const bool filtered = event.least_latency != 0 || value_of(unit, "l3missonly", attr) != 0;
  event.weight_unit = filtered                               ? profile::WeightUnit::occurrences
                      : value_of(unit, "cnt_ctl", attr) != 0 ? profile::WeightUnit::micro_ops
                                                             : profile::WeightUnit::cycles;
  const auto filter = encode_terms(unit.format, event.kernel_excluded ? "swfilt=1" : "");
  const EventConfig more = filter.value_or(EventConfig{});
  event.attr.config = attr.config | more[0];
  event.attr.config1 = attr.config1 | more[1];
  event.attr.config2 = attr.config2 | more[2];
  return event;
}

/// Makes an event of a core. Its meaning is known for accesses only; others count as they are, by the thousand.
Result<MemoryEvent> core_event(const MachineDescription& machine, const PmuUnit* unit, perf_event_attr attr,
                               const MemorySampling& wanted) {
  MemoryEvent event;
  const bool of_core = (unit != nullptr && is_core_unit(unit->name)) || attr.type == PERF_TYPE_RAW;
  const bool accesses = of_core && machine.vendor == "GenuineIntel" && counts_intel_accesses(attr.config);
  if (accesses && attr.precise_ip == 0 && unit != nullptr) {
    attr.precise_ip = static_cast<unsigned>(unit->max_precise()) & 3U;
  }
  constexpr std::uint64_t of_the_kernel = 1000;  // of its own events there are fewer
  attr.sample_period = of_core || attr.type == PERF_TYPE_HARDWARE ? wanted.load_period : of_the_kernel;
  complete(machine, attr);
  event.attr = attr;
  event.source = accesses && attr.precise_ip > 0 ? profile::SourceKind::pebs : profile::SourceKind::counter;
  event.weight_unit = accesses ? profile::WeightUnit::accesses : profile::WeightUnit::occurrences;
  const std::uint32_t latency = accesses ? intel_least_latency(attr.config, attr.config1) : 0;
  event.least_latency = latency > every_load ? latency : 0;
  if (latency != 0 && unit != nullptr) {
    auto leader = leader_of_loads(*unit);
    if (!leader) {
      return tl::unexpected<Error>(leader.error());
    }
    event.leader = *leader;
    event.attr.disabled = event.leader ? 0 : 1;  // the leader switches both
  }
  return event;
}

Result<perf_event_attr> encode_unit(const PmuUnit& unit, std::string_view terms, std::string_view modifiers) {
  const auto precision = precision_in(modifiers);
  const auto text = spelled_out(unit, terms);
  if (!precision || !text) {
    return tl::unexpected<Error>(precision ? text.error() : precision.error());
  }
  const auto config = encode_terms(unit.format, *text);
  if (!config) {
    return tl::unexpected<Error>(config.error());
  }
  perf_event_attr attr{};
  attr.type = unit.type;
  attr.config = (*config)[0];
  attr.config1 = (*config)[1];
  attr.config2 = (*config)[2];
  attr.precise_ip = *precision & 3U;
  return attr;
}

Result<perf_event_attr> encode(const MachineDescription& machine, const EventLibrary& library,
                               const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) {
    auto attr = library.encode(name);
    return attr ? attr : unknown("'" + name + "': " + attr.error().message, name, library.names());
  }
  const std::size_t end = name.find('/', slash + 1);
  if (end == std::string::npos) {
    return fail(ErrorCode::invalid_argument, "'" + name + "' lacks its second slash: UNIT/TERMS/");
  }
  const std::string unit_name = name.substr(0, slash);
  const PmuUnit* const unit = machine.unit(unit_name);
  if (unit == nullptr) {
    return unknown("there is no unit '" + unit_name + "' in /sys/bus/event_source/devices that samples accesses",
                   unit_name, unit_names(machine));
  }
  if (unit_name == "ibs_fetch") {
    return fail(ErrorCode::invalid_argument,
                "'" + name + "' samples how instructions are fetched, not what they access; take ibs_op");
  }
  return encode_unit(*unit, std::string_view(name).substr(slash + 1, end - slash - 1),
                     std::string_view(name).substr(end + 1));
}

}  // namespace

std::vector<std::string> nearest_names(std::string_view given, std::span<const std::string> known) {
  constexpr std::size_t most = 3;
  constexpr std::size_t longest = 64;  // the work grows with its square
  std::vector<std::pair<std::size_t, std::string>> scored;
  scored.reserve(known.size());
  for (const std::string& name : known) {
    scored.emplace_back(distance(given.substr(0, longest), std::string_view(name).substr(0, longest)), name);
  }
  std::sort(scored.begin(), scored.end());
  std::vector<std::string> nearest;
  for (std::size_t i = 0; i < std::min(most, scored.size()); ++i) {
    nearest.push_back(scored[i].second);
  }
  return nearest;
}

Result<MemoryEvent> named_event(const MachineDescription& machine, const EventLibrary& library, const std::string& name,
                                const MemorySampling& wanted) {
  const auto attr = encode(machine, library, name);
  if (!attr) {
    return tl::unexpected<Error>(attr.error());
  }
  const PmuUnit* const unit = unit_of(machine, *attr);
  auto event = unit != nullptr && unit->name == "ibs_op" ? ibs_event(machine, *attr, wanted)
                                                         : core_event(machine, unit, *attr, wanted);
  if (event) {
    event->unit = unit != nullptr ? unit->name : "";
    event->name = name;
  }
  return event;
}

}  // namespace crosstalk::collectors
