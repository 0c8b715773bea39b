// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/counter_groups.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <optional>
#include <utility>

#include "collectors/pmu/named_event.h"

namespace crosstalk::collectors {
namespace {

using profile::CounterQuantity;

constexpr std::size_t family_index(CounterFamily family) { return static_cast<std::size_t>(family); }

/// "cpu/config=0x3c/"
std::string term_of(const std::string& unit, std::uint64_t config) {
  constexpr int sixteen = 16;
  char digits[16];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, config, sixteen);
  return unit + "/config=0x" + std::string(digits, end) + "/";
}

/// Returns the attributes of a counter of user mode: the measured loops run there, and users may count it at
/// kernel.perf_event_paranoid 2.
perf_event_attr counting(std::uint32_t type, std::uint64_t config) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = config;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attr.use_clockid = 1;  // the clock of all records
  attr.clockid = CLOCK_MONOTONIC;
  return attr;
}

/// Makes the event a leader: it begins disabled, and with it all of its group.
void make_leader(perf_event_attr& attr, std::uint64_t period) {
  attr.disabled = 1;
  attr.sample_period = period;
  attr.sample_type =
      PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_READ;
  attr.watermark = 1;  // the waiter for the thread's clock takes its readings along
  attr.wakeup_watermark = INT32_MAX;
}

CounterEvent event_of(const PmuUnit& unit, const CountedEvent& known) {
  CounterEvent event;
  event.row.name = profile::name_of(known.quantity);
  event.row.event = term_of(unit.name, known.config) + (known.name.empty() ? "" : " (" + std::string(known.name) + ")");
  event.row.unit = unit.name;
  event.row.quantity = known.quantity;
  event.row.each = known.each;
  event.family = known.family;
  event.attr = counting(unit.type, known.config);
  event.counters = known.counters;
  event.place = known.place;
  return event;
}

/// The counters of a processor that are still free for a group.
class Room {
 public:
  explicit Room(unsigned counters, unsigned taken)
      : any_(counters - std::min(counters, taken)),
        lower_(std::min(any_, lower_counters)),
        half_(counters / 2 - std::min(counters / 2, taken)) {}

  /// Takes the event's counters. False: they do not fit.
  bool take(const CounterEvent& event) {
    const bool halved = alone_ || event.place == CounterPlace::alone;
    const bool fits = any_ >= event.counters && (!halved || half_ >= event.counters) &&
                      (event.place != CounterPlace::lower || lower_ >= event.counters);
    alone_ = halved;
    any_ -= std::min(any_, event.counters);
    half_ -= std::min(half_, event.counters);
    if (event.place == CounterPlace::lower) {
      lower_ -= std::min(lower_, event.counters);
    }
    return fits;
  }

 private:
  unsigned any_, lower_, half_;
  bool alone_ = false;
};

/// Packs the events of a unit into groups.
class Packer {
 public:
  Packer(const PmuUnit& unit, unsigned counters, unsigned taken, CounterEvent cycles, std::optional<CounterEvent> free)
      : unit_(unit.name),
        empty_(counters, taken + cycles.counters),
        cycles_(std::move(cycles)),
        free_(std::move(free)) {}

  /// Adds events that belong together, into one group if possible.
  void add(std::span<const CounterEvent> together) {
    const auto fits = std::find_if(rooms_.begin(), rooms_.end(), [together](Room room) {
      return std::all_of(together.begin(), together.end(),
                         [&room](const CounterEvent& event) { return room.take(event); });
    });
    auto group = static_cast<std::size_t>(fits - rooms_.begin());
    for (const CounterEvent& event : together) {
      if (group == rooms_.size() || !Room(rooms_[group]).take(event)) {
        group = open_group();
      }
      rooms_[group].take(event);
      groups_[group].events.push_back(event);
    }
  }
  [[nodiscard]] std::vector<CounterGroup> take() {
    if (groups_.empty()) {
      open_group();
    }
    return std::move(groups_);
  }

 private:
  std::size_t open_group() {
    CounterGroup group{unit_, {cycles_}};
    if (free_) {
      group.events.push_back(*free_);
    }
    groups_.push_back(std::move(group));
    rooms_.push_back(empty_);
    return rooms_.size() - 1;
  }

  std::string unit_;
  Room empty_;
  CounterEvent cycles_;
  std::optional<CounterEvent> free_;  // has a counter of its own, and so counts in each group
  std::vector<CounterGroup> groups_;
  std::vector<Room> rooms_;  // by group
};

struct Wanted {
  std::vector<CounterQuantity> quantities;
  std::vector<CounterFamily> families;
  std::vector<CounterEvent> named;
  bool all = false;

  [[nodiscard]] bool has(const CountedEvent& event) const {
    return all || std::find(quantities.begin(), quantities.end(), event.quantity) != quantities.end() ||
           std::find(families.begin(), families.end(), event.family) != families.end();
  }
};

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (std::size_t i = 1; i < profile::counter_quantities; ++i) {
    names.emplace_back(profile::name_of(static_cast<CounterQuantity>(i)));
  }
  for (std::size_t i = 0; i < counter_families; ++i) {
    names.emplace_back(name_of(static_cast<CounterFamily>(i)));
  }
  return names;
}

/// Makes an event that the user names by another library's name.
Result<CounterEvent> named_counter(const MachineDescription& machine, const EventLibrary& library,
                                   const std::string& name) {
  const auto found = named_event(machine, library, name);
  if (!found) {
    std::string nearest;
    const auto known = known_names();
    for (const std::string& other : nearest_names(name, known)) {
      nearest += (nearest.empty() ? "" : ", ") + other;
    }
    return fail(found.error().code, found.error().message + "; of what is counted here: " + nearest);
  }
  if (!is_core_unit(found->unit)) {
    return fail(ErrorCode::invalid_argument, "'" + name + "' is no event of a core's counters");
  }
  CounterEvent event;
  event.row.name = name;
  event.row.event = term_of(found->unit, found->attr.config);
  event.row.unit = found->unit;
  event.attr = counting(found->attr.type, found->attr.config);
  event.attr.config1 = found->attr.config1;
  event.attr.config2 = found->attr.config2;
  return event;
}

Result<Wanted> wanted_of(const MachineDescription& machine, const EventLibrary& library, const CounterWish& wish) {
  Wanted wanted;
  wanted.all = wish.names.empty();
  for (const std::string& name : wish.names) {
    bool found = false;
    for (std::size_t i = 1; i < profile::counter_quantities && !found; ++i) {
      const auto quantity = static_cast<CounterQuantity>(i);
      if (found = name == profile::name_of(quantity); found) {
        wanted.quantities.push_back(quantity);
      }
    }
    for (std::size_t i = 0; i < counter_families; ++i) {
      const auto family = static_cast<CounterFamily>(i);
      if (name == name_of(family)) {  // "flops" is both: all of them
        wanted.families.push_back(family);
        found = true;
      }
    }
    if (found) {
      continue;
    }
    auto event = named_counter(machine, library, name);
    if (!event) {
      return tl::unexpected<Error>(event.error());
    }
    wanted.named.push_back(std::move(*event));
  }
  return wanted;
}

const CountedEvent* find(const CounterTable& table, CounterQuantity quantity) {
  const auto found = std::find_if(table.events.begin(), table.events.end(),
                                  [quantity](const CountedEvent& event) { return event.quantity == quantity; });
  return found == table.events.end() ? nullptr : &*found;
}

/// Notes the wanted families and quantities that this core lacks.
void note_lacking(const PmuUnit& unit, const CounterTable& table, const Wanted& wanted,
                  std::vector<std::string>& lacking) {
  const std::string of = " of " + unit.name + " (" + std::string(table.core) + "): ";
  for (std::size_t i = 0; i < counter_families; ++i) {
    const auto family = static_cast<CounterFamily>(i);
    const bool asked =
        wanted.all || std::find(wanted.families.begin(), wanted.families.end(), family) != wanted.families.end();
    if (asked && !table.lacks.at(i).empty()) {
      lacking.push_back(in_words(family) + of + std::string(table.lacks.at(i)));
    }
  }
  for (const CounterQuantity quantity : wanted.quantities) {
    if (find(table, quantity) == nullptr && quantity != CounterQuantity::flops) {
      lacking.push_back(profile::name_of(quantity) + of + "its counters do not count them");
    }
  }
}

void add_unit(const PmuUnit& unit, const CounterTable& table, const Wanted& wanted, const CounterWish& wish,
              CounterPlan& plan) {
  CounterEvent cycles = event_of(unit, *find(table, CounterQuantity::cycles));
  make_leader(cycles.attr, wish.first_period);
  const CounterEvent instructions = event_of(unit, *find(table, CounterQuantity::instructions));
  const unsigned taken = wish.nmi_watchdog ? 1 : 0;
  Packer packer(unit, table.counters, taken, std::move(cycles),
                table.has_fixed ? std::optional(instructions) : std::nullopt);
  std::array<std::vector<CounterEvent>, counter_families> families;
  if (!table.has_fixed) {
    families[family_index(CounterFamily::accesses)].push_back(instructions);
  }
  for (const CountedEvent& known : table.events) {
    if (known.family != CounterFamily::base && wanted.has(known)) {
      families.at(family_index(known.family)).push_back(event_of(unit, known));
    }
  }
  for (const auto& family : families) {
    packer.add(family);
  }
  for (const CounterEvent& named : wanted.named) {
    if (named.row.unit == unit.name) {
      packer.add({&named, 1});
    }
  }
  for (CounterGroup& group : packer.take()) {
    plan.groups.push_back(std::move(group));
  }
  note_lacking(unit, table, wanted, plan.lacking);
}

std::string why_no_unit(const MachineDescription& machine) {
  return machine.virtual_machine ? "no CPU PMU: start the virtual machine with one (qemu: -cpu host,pmu=on)"
                                 : "no CPU PMU in /sys/bus/event_source/devices";
}

}  // namespace

std::vector<std::string> counter_names(std::string_view list) {
  std::vector<std::string> names(1);
  bool in_terms = false;
  for (const char c : list) {
    in_terms = c == '/' ? !in_terms : in_terms;
    if (c == ',' && !in_terms) {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  return names;
}

Result<CounterPlan> counter_groups(const MachineDescription& machine, const EventLibrary& library,
                                   const CounterWish& wish) {
  const auto wanted = wanted_of(machine, library, wish);
  if (!wanted) {
    return tl::unexpected<Error>(wanted.error());
  }
  CounterPlan plan;
  std::string lack = why_no_unit(machine);
  for (const PmuUnit& unit : machine.units) {
    if (!is_core_unit(unit.name)) {
      continue;
    }
    const CounterTable* const table =
        counter_table(machine.vendor, machine.family, machine.model, unit.name == "cpu_atom");
    if (table == nullptr) {
      lack = "what " + unit.name + " counts on this processor (" +
             (machine.vendor.empty() ? "unknown" : machine.vendor) + ", family " + std::to_string(machine.family) +
             ", model " + std::to_string(machine.model) + ") is not known here";
      plan.lacking.push_back(lack);
      continue;
    }
    add_unit(unit, *table, *wanted, wish, plan);
  }
  if (plan.groups.empty()) {
    return fail(ErrorCode::unsupported, lack);
  }
  return plan;
}

namespace {

bool too_much(int error) { return error == EINVAL || error == ENOSPC; }

/// Moves events from the group into `over` until the kernel takes the rest. An error: the kernel refuses its cycles.
Result<void> shrink(CounterGroup& group, const GroupTrial& trial, std::vector<CounterEvent>& over,
                    std::vector<std::string>& lacking) {
  while (true) {
    const GroupOutcome outcome = trial(group.events);
    if (outcome.error == 0) {
      return {};
    }
    if (outcome.refused == 0) {
      return tl::unexpected<Error>(outcome.why);
    }
    const auto refused = group.events.begin() + static_cast<std::ptrdiff_t>(outcome.refused);
    if (too_much(outcome.error) && group.events.size() > 2) {
      over.push_back(std::move(*refused));
    } else {
      lacking.push_back(refused->row.name + " of " + group.unit + ": " + outcome.why.message);
    }
    group.events.erase(refused);
  }
}

}  // namespace

Result<CounterPlan> fit_groups(CounterPlan plan, const GroupTrial& trial) {
  CounterPlan fit;
  fit.lacking = std::move(plan.lacking);
  Error refusal;
  std::vector<std::string> without_cycles;  // units, whose groups are all led by these
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    CounterGroup& group = plan.groups[i];
    std::vector<CounterEvent> over;
    if (std::find(without_cycles.begin(), without_cycles.end(), group.unit) != without_cycles.end()) {
      continue;
    }
    if (const auto shrunk = shrink(group, trial, over, fit.lacking); !shrunk) {
      refusal = shrunk.error();
      without_cycles.push_back(group.unit);
      continue;
    }
    if (!over.empty()) {
      CounterGroup more{group.unit, {group.events.front()}};
      more.events.insert(more.events.end(), over.begin(), over.end());
      plan.groups.push_back(std::move(more));  // `group` is not used any more: it may have moved
      fit.groups.push_back(plan.groups[i]);
      continue;
    }
    const bool tells = group.events.size() > 1;
    if (tells || fit.groups.empty()) {
      fit.groups.push_back(std::move(group));
    }
  }
  if (fit.groups.empty()) {
    return tl::unexpected<Error>(refusal);
  }
  return fit;
}

std::vector<profile::CounterRow> counter_rows(const CounterPlan& plan) {
  std::vector<profile::CounterRow> rows;
  std::uint32_t number = 0;
  for (const CounterGroup& group : plan.groups) {
    ++number;
    for (const CounterEvent& event : group.events) {
      profile::CounterRow& row = rows.emplace_back(event.row);
      row.id = static_cast<std::uint32_t>(rows.size());
      row.group = number;
    }
  }
  return rows;
}

}  // namespace crosstalk::collectors
