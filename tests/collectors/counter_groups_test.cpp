// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/counter_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/split.h"
#include "described_machine.h"

namespace crosstalk::collectors::counter_groups_test {
namespace {

using profile::CounterQuantity;

/// libpfm4's, also of processors that are not here.
EventLibrary library() {
  setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
  return libpfm4();
}

Result<CounterPlan> plan_of(const std::string& machine, const CounterWish& wish = {}) {
  return counter_groups(described(machine), library(), wish);
}

const CounterEvent* find(const CounterPlan& plan, CounterQuantity quantity, const std::string& unit = "cpu") {
  for (const CounterGroup& group : plan.groups) {
    for (const CounterEvent& event : group.events) {
      if (event.row.quantity == quantity && group.unit == unit) {
        return &event;
      }
    }
  }
  return nullptr;
}

unsigned counters_of(const CounterGroup& group, std::optional<CounterPlace> place = std::nullopt) {
  unsigned sum = 0;
  for (const CounterEvent& event : group.events) {
    sum += !place || event.place == *place ? event.counters : 0;
  }
  return sum;
}

TEST(CounterTables, encodings_are_those_of_the_library) {
  const EventLibrary known = library();
  std::set<std::string> units;
  for (const CounterTable* table : all_counter_tables()) {
    for (const std::string_view unit : split(table->libraries, ' ')) {
      units.emplace(unit);
      for (const CountedEvent& event : table->events) {
        if (!event.in_library) {
          continue;
        }
        std::uint64_t config = 0;
        for (const std::string_view part : split(event.name, '+')) {
          const std::string name = std::string(unit) + "::" + std::string(part);
          const auto attr = known.encode(name);
          EXPECT_TRUE(attr) << name << ": " << attr.error().message;
          config |= attr ? attr->config : 0;
          EXPECT_EQ(attr ? attr->config1 : 0, 0U) << name;
        }
        EXPECT_EQ(config, event.config) << unit << " " << event.name << std::hex << " " << config << " "
                                        << event.config;
      }
    }
  }
  EXPECT_EQ(units.size(), 19U);
}

/// An event that libpfm4 4.13 does not know, or encodes differently from the manual.
struct InManual {
  std::string_view core;
  std::string_view
      name;  ///< Intel's lists at github.com/intel/perfmon, AMD's names as in Linux's tools/perf/pmu-events
  unsigned code, mask;
  double each;
};
constexpr InManual in_manuals[] = {
    {"Sandy Bridge", "LONGEST_LAT_CACHE:MISS", 0x2e, 0x41, 1},
    {"Golden Cove", "TOPDOWN:BACKEND_BOUND_SLOTS", 0xa4, 0x02, 1 / 6.0},
    {"Gracemont", "CPU_CLK_UNHALTED.CORE_P", 0x3c, 0, 1},
    {"Gracemont", "INST_RETIRED.ANY_P", 0xc0, 0, 1},
    {"Gracemont", "MEM_UOPS_RETIRED.ALL_LOADS", 0xd0, 0x81, 1},
    {"Gracemont", "MEM_UOPS_RETIRED.ALL_STORES", 0xd0, 0x82, 1},
    {"Gracemont", "LONGEST_LAT_CACHE.MISS", 0x2e, 0x41, 1},
    {"Gracemont", "TOPDOWN_RETIRING.ALL", 0xc2, 0, 1 / 5.0},
    {"Gracemont", "TOPDOWN_FE_BOUND.ALL", 0x71, 0, 1 / 5.0},
    {"Gracemont", "TOPDOWN_BAD_SPECULATION.ALL", 0x73, 0, 1 / 5.0},
    {"Gracemont", "TOPDOWN_BE_BOUND.ALL", 0x74, 0, 1 / 5.0},
    {"Gracemont", "BR_INST_RETIRED.ALL_BRANCHES", 0xc4, 0, 1},
    {"Gracemont", "BR_MISP_RETIRED.ALL_BRANCHES", 0xc5, 0, 1},
    {"Crestmont", "CPU_CLK_UNHALTED.CORE_P", 0x3c, 0, 1},
    {"Crestmont", "INST_RETIRED.ANY_P", 0xc0, 0, 1},
    {"Crestmont", "FP_FLOPS_RETIRED.ALL", 0xc8, 0x03, 1},
    {"Crestmont", "MEM_UOPS_RETIRED.ALL_LOADS", 0xd0, 0x81, 1},
    {"Crestmont", "MEM_UOPS_RETIRED.ALL_STORES", 0xd0, 0x82, 1},
    {"Crestmont", "LONGEST_LAT_CACHE.MISS", 0x2e, 0x41, 1},
    {"Crestmont", "TOPDOWN_RETIRING.ALL", 0x72, 0, 1 / 6.0},
    {"Crestmont", "TOPDOWN_FE_BOUND.ALL", 0x71, 0, 1 / 6.0},
    {"Crestmont", "TOPDOWN_BAD_SPECULATION.ALL", 0x73, 0, 1 / 6.0},
    {"Crestmont", "TOPDOWN_BE_BOUND.ALL", 0x74, 0, 1 / 6.0},
    {"Crestmont", "BR_INST_RETIRED.ALL_BRANCHES", 0xc4, 0, 1},
    {"Crestmont", "BR_MISP_RETIRED.ALL_BRANCHES", 0xc5, 0, 1},
    {"Zen 5", "ls_not_halted_cyc", 0x76, 0, 1},
    {"Zen 5", "ex_ret_instr", 0xc0, 0, 1},
    {"Zen 5", "fp_ret_sse_avx_ops.all", 0x03, 0x0f, 1},
    {"Zen 5", "ls_dispatch.ld_dispatch+ls_dispatch.ld_st_dispatch", 0x29, 0x01 | 0x04, 1},
    {"Zen 5", "ls_dispatch.store_dispatch+ls_dispatch.ld_st_dispatch", 0x29, 0x02 | 0x04, 1},
    {"Zen 5", "ls_any_fills_from_sys.all", 0x44, 0xff, 1},
    {"Zen 5", "ls_any_fills_from_sys.dram_io_all+ls_any_fills_from_sys.alternate_memories", 0x44, 0x48 | 0x80, 1},
    {"Zen 5", "ex_ret_ops", 0xc1, 0, 1 / 8.0},
    {"Zen 5", "de_no_dispatch_per_slot.no_ops_from_frontend", 0x1a0, 0x01, 1 / 8.0},
    {"Zen 5", "de_no_dispatch_per_slot.backend_stalls", 0x1a0, 0x1e, 1 / 8.0},
    {"Zen 5", "de_src_op_disp.all", 0xaa, 0x07, 1 / 8.0},
    {"Zen 5", "ex_ret_brn", 0xc2, 0, 1},
    {"Zen 5", "ex_ret_brn_misp", 0xc3, 0, 1},
};

TEST(CounterTables, what_the_library_does_not_know_is_as_the_manuals_have_it) {
  for (const CounterTable* table : all_counter_tables()) {
    for (const CountedEvent& event : table->events) {
      EXPECT_FALSE(event.name.empty()) << table->core << " " << name_of(event.quantity);
      if (event.in_library) {
        EXPECT_FALSE(table->libraries.empty()) << table->core << " " << event.name;
        continue;
      }
      const auto* const known = std::find_if(std::begin(in_manuals), std::end(in_manuals), [&](const InManual& entry) {
        return entry.core == table->core && entry.name == event.name;
      });
      ASSERT_NE(known, std::end(in_manuals)) << table->core << " " << event.name;
      const std::uint64_t code = (known->code & 0xffU) | std::uint64_t{known->code >> 8U} << 32U;
      EXPECT_EQ(event.config, code | known->mask << 8U) << table->core << " " << event.name;
      EXPECT_DOUBLE_EQ(event.each, known->each) << table->core << " " << event.name;
    }
  }
}

TEST(CounterTables, a_count_of_vectors_stands_for_their_elements) {
  const std::map<CounterQuantity, double> each = {
      {CounterQuantity::flops_scalar, 1},         {CounterQuantity::flops_sse_double, 2},
      {CounterQuantity::flops_sse_single, 4},     {CounterQuantity::flops_avx2_double, 4},
      {CounterQuantity::flops_avx2_single, 8},    {CounterQuantity::flops_avx512_double, 8},
      {CounterQuantity::flops_avx512_single, 16}, {CounterQuantity::flops, 1}};
  for (const CounterTable* table : all_counter_tables()) {
    for (const CountedEvent& event : table->events) {
      if (event.family == CounterFamily::flops) {
        EXPECT_DOUBLE_EQ(event.each, each.at(event.quantity)) << table->core << " " << name_of(event.quantity);
      }
    }
  }
}

bool counts(const CounterTable* table, CounterQuantity quantity) {
  return std::any_of(table->events.begin(), table->events.end(),
                     [quantity](const CountedEvent& event) { return event.quantity == quantity; });
}

TEST(CounterTables, are_those_of_the_model) {
  const auto intel = [](unsigned model, bool small = false) { return counter_table("GenuineIntel", 6, model, small); };
  const auto amd = [](unsigned family, unsigned model) { return counter_table("AuthenticAMD", family, model, false); };
  for (const unsigned server : {0x55U, 0x8fU, 0xcfU, 0xadU, 0x6aU}) {
    EXPECT_TRUE(counts(intel(server), CounterQuantity::flops_avx512_double)) << server;
  }
  for (const unsigned client : {0x5eU, 0x9eU, 0x97U, 0xb7U, 0xaaU}) {  // those cores have no AVX-512
    EXPECT_FALSE(counts(intel(client), CounterQuantity::flops_avx512_double)) << client;
    EXPECT_TRUE(counts(intel(client), CounterQuantity::flops_avx2_double)) << client;
  }
  EXPECT_EQ(intel(0xb7, true)->core, "Gracemont");
  EXPECT_EQ(intel(0xaa, true)->core, "Crestmont");
  EXPECT_EQ(intel(0xbd, true), nullptr);  // Lunar Lake
  EXPECT_EQ(amd(0x17, 0x01)->core, "Zen");
  EXPECT_EQ(amd(0x17, 0x31)->core, "Zen 2");
  EXPECT_EQ(amd(0x17, 0x50)->core, "Zen");
  EXPECT_EQ(amd(0x17, 0x71)->core, "Zen 2");
  EXPECT_EQ(amd(0x19, 0x21)->core, "Zen 3");
  EXPECT_EQ(amd(0x19, 0x11)->core, "Zen 4");
  EXPECT_EQ(amd(0x19, 0x61)->core, "Zen 4");
  EXPECT_EQ(amd(0x1a, 0x44)->core, "Zen 5");
  EXPECT_EQ(amd(0x1a, 0x50), nullptr);  // Zen 6
  EXPECT_EQ(amd(0x1a, 0x90), nullptr);
  EXPECT_EQ(amd(0x10, 0x04), nullptr);
}

TEST(CounterTables, each_quantity_is_there_once_and_worth_something) {
  for (const CounterTable* table : all_counter_tables()) {
    std::set<CounterQuantity> seen;
    std::set<std::uint64_t> configs;
    for (const CountedEvent& event : table->events) {
      EXPECT_TRUE(seen.insert(event.quantity).second) << table->core << " " << name_of(event.quantity);
      EXPECT_TRUE(configs.insert(event.config).second) << table->core << " " << name_of(event.quantity);
      EXPECT_GT(event.each, 0);
    }
    EXPECT_TRUE(seen.contains(CounterQuantity::cycles)) << table->core;
    EXPECT_TRUE(seen.contains(CounterQuantity::instructions)) << table->core;
    for (std::size_t i = 0; i < counter_families; ++i) {  // an absent family has a reason
      const bool any = std::any_of(table->events.begin(), table->events.end(), [i](const CountedEvent& event) {
        return static_cast<std::size_t>(event.family) == i;
      });
      EXPECT_TRUE(any || !table->lacks.at(i).empty()) << table->core << " " << in_words(static_cast<CounterFamily>(i));
    }
  }
}

TEST(CounterGroups, attributes_of_a_leader_and_of_a_member_are_exact) {
  const auto plan = plan_of("skylake_sp");
  ASSERT_TRUE(plan);
  const perf_event_attr& leader = plan->groups.front().events.front().attr;
  EXPECT_EQ(leader.size, sizeof leader);
  EXPECT_EQ(leader.type, 4U);
  EXPECT_EQ(leader.config, 0x3cU);
  EXPECT_EQ(leader.sample_period, 4'000'000U);
  EXPECT_EQ(leader.sample_type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                    PERF_SAMPLE_CPU | PERF_SAMPLE_READ);
  constexpr unsigned format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  EXPECT_EQ(leader.read_format, format);
  EXPECT_EQ(leader.disabled, 1U);
  EXPECT_EQ(leader.exclude_kernel, 1U);
  EXPECT_EQ(leader.exclude_hv, 1U);
  EXPECT_EQ(leader.use_clockid, 1U);
  EXPECT_EQ(leader.inherit, 0U);
  EXPECT_EQ(leader.precise_ip, 0U);
  const perf_event_attr& member = find(*plan, CounterQuantity::stalls_l3_miss)->attr;
  EXPECT_EQ(member.config, 0x060006a3U);
  EXPECT_EQ(member.sample_period, 0U);
  EXPECT_EQ(member.read_format, format);
  EXPECT_EQ(member.disabled, 0U);
  EXPECT_EQ(member.exclude_kernel, 1U);
}

TEST(CounterGroups, no_group_has_more_events_than_counters_and_families_stay_together) {
  const std::map<std::string, unsigned> counters = {{"sandy_bridge", 4},
                                                    {"ivy_bridge_ep", 4},
                                                    {"haswell", 4},
                                                    {"broadwell_ep", 4},
                                                    {"skylake_sp", 4},
                                                    {"ice_lake_sp", 8},
                                                    {"sapphire_rapids", 8},
                                                    {"granite_rapids", 8},
                                                    {"zen2", 6},
                                                    {"zen3", 6},
                                                    {"zen4", 6},
                                                    {"zen5", 6},
                                                    {"hygon", 6}};
  for (const auto& [machine, most] : counters) {
    for (const bool watchdog : {false, true}) {
      CounterWish wish;
      wish.nmi_watchdog = watchdog;
      const auto plan = plan_of(machine, wish);
      ASSERT_TRUE(plan) << machine << ": " << plan.error().message;
      for (const CounterGroup& group : plan->groups) {
        EXPECT_LE(counters_of(group), watchdog ? most - 1 : most) << machine;
        EXPECT_LE(counters_of(group, CounterPlace::lower), lower_counters) << machine;
        if (counters_of(group, CounterPlace::alone) > 0) {
          EXPECT_LE(counters_of(group), watchdog ? most / 2 - 1 : most / 2) << machine;
        }
        EXPECT_EQ(group.events.front().row.quantity, CounterQuantity::cycles) << machine;
        EXPECT_GT(group.events.size(), 1U) << machine;
      }
      const auto group_of = [&](CounterQuantity quantity) {
        const auto has = [&](const CounterGroup& group) {
          return std::any_of(group.events.begin(), group.events.end(),
                             [&](const CounterEvent& event) { return event.row.quantity == quantity; });
        };
        return std::find_if(plan->groups.begin(), plan->groups.end(), has) - plan->groups.begin();
      };
      const bool in_half = find(*plan, CounterQuantity::loads)->place == CounterPlace::alone;
      if (!watchdog || !in_half) {
        EXPECT_EQ(group_of(CounterQuantity::loads), group_of(CounterQuantity::stores)) << machine;
      }
      if (!watchdog && find(*plan, CounterQuantity::stalls_l3_miss) != nullptr) {
        EXPECT_EQ(group_of(CounterQuantity::stalls_l1d_miss), group_of(CounterQuantity::stalls_l3_miss)) << machine;
      }
      if (!watchdog && find(*plan, CounterQuantity::retiring) != nullptr) {
        EXPECT_EQ(group_of(CounterQuantity::retiring), group_of(CounterQuantity::frontend_bound)) << machine;
      }
    }
  }
}

TEST(CounterGroups, fixed_counters_are_free_where_there_are_some) {
  const auto intel = plan_of("skylake_sp");
  ASSERT_TRUE(intel);
  for (const CounterGroup& group : intel->groups) {
    EXPECT_EQ(group.events[1].row.quantity, CounterQuantity::instructions);
    EXPECT_EQ(group.events[1].counters, 0U);
  }
  const auto amd = plan_of("zen3");
  ASSERT_TRUE(amd);
  std::size_t instructions = 0;
  for (const CounterGroup& group : amd->groups) {
    instructions +=
        static_cast<std::size_t>(std::count_if(group.events.begin(), group.events.end(), [](const CounterEvent& event) {
          return event.row.quantity == CounterQuantity::instructions;
        }));
  }
  EXPECT_EQ(instructions, 1U);
  EXPECT_EQ(find(*amd, CounterQuantity::flops)->counters, 2U);  // the kernel joins two
}

/// True if the event counts on the lower counters only, by its code and unit mask: Intel's lists, field "Counter".
bool is_of_lower_counters(const std::string& machine, std::uint64_t config) {
  const std::uint64_t code = config & 0xffU;
  const std::uint64_t mask = config >> 8U & 0xffU;
  if (code == 0xa3) {  // CYCLE_ACTIVITY; not STALLS_TOTAL, STALLS_MEM_ANY
    return mask != 0x04 && mask != 0x14;
  }
  if (machine == "ice_lake_sp") {
    return code == 0x51 || code == 0xd0 || code == 0xf0 ||
           code == 0xf1;  // L1D, MEM_INST_RETIRED, L2_TRANS, L2_LINES_IN
  }
  return code == 0x25 || code == 0x47 || code == 0x51 || code == 0xd0;  // L2_LINES_IN, MEMORY_ACTIVITY, L1D, ...
}

TEST(CounterGroups, events_of_the_lower_counters_are_told_and_no_more_than_those) {
  for (const char* machine : {"ice_lake_sp", "sapphire_rapids", "granite_rapids"}) {
    const auto plan = plan_of(machine);
    ASSERT_TRUE(plan);
    for (const CounterGroup& group : plan->groups) {
      for (const CounterEvent& event : group.events) {
        EXPECT_EQ(event.place == CounterPlace::lower, is_of_lower_counters(machine, event.attr.config))
            << machine << " " << event.row.event;
      }
    }
  }
}

// arch/x86/events/core.c, x86_schedule_events(): with such an event, a group that wants more than half of the counters
// is opened, but never gets them.
TEST(CounterGroups, loads_and_stores_of_old_cores_have_half_of_the_counters) {
  for (const char* machine : {"sandy_bridge", "ivy_bridge_ep", "haswell"}) {
    const auto plan = plan_of(machine);
    ASSERT_TRUE(plan);
    for (const auto quantity : {CounterQuantity::loads, CounterQuantity::stores}) {
      EXPECT_EQ(find(*plan, quantity)->place, CounterPlace::alone) << machine;
    }
    for (const CounterGroup& group : plan->groups) {
      EXPECT_TRUE(counters_of(group, CounterPlace::alone) == 0 || counters_of(group) == 2) << machine;
    }
  }
  const auto broadwell = plan_of("broadwell_ep");
  ASSERT_TRUE(broadwell);
  EXPECT_EQ(find(*broadwell, CounterQuantity::loads)->place, CounterPlace::any);
}

TEST(CounterGroups, small_cores_of_meteor_lake_are_not_those_of_alder_lake) {
  MachineDescription machine = described("alder_lake");
  machine.model = 0xaa;
  const auto plan = counter_groups(machine, library());
  ASSERT_TRUE(plan);
  const CounterEvent* const retiring = find(*plan, CounterQuantity::retiring, "cpu_atom");
  ASSERT_NE(retiring, nullptr);
  EXPECT_EQ(retiring->attr.config, 0x72U);
  EXPECT_DOUBLE_EQ(retiring->row.each, 1 / 6.0);
  ASSERT_NE(find(*plan, CounterQuantity::flops, "cpu_atom"), nullptr);
}

TEST(CounterGroups, each_kind_of_core_has_groups_of_its_own) {
  const auto plan = plan_of("alder_lake");
  ASSERT_TRUE(plan);
  const CounterEvent* const large = find(*plan, CounterQuantity::retiring, "cpu_core");
  const CounterEvent* const small = find(*plan, CounterQuantity::retiring, "cpu_atom");
  ASSERT_NE(large, nullptr);
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(large->attr.type, 4U);
  EXPECT_EQ(small->attr.type, 10U);
  EXPECT_DOUBLE_EQ(large->row.each, 1 / 6.0);
  EXPECT_DOUBLE_EQ(small->row.each, 1 / 5.0);
  for (const CounterGroup& group : plan->groups) {
    for (const CounterEvent& event : group.events) {
      EXPECT_EQ(event.row.unit, group.unit);
    }
  }
}

TEST(CounterGroups, what_a_machine_lacks_has_a_reason) {
  const auto haswell = plan_of("haswell");
  ASSERT_TRUE(haswell);
  EXPECT_EQ(find(*haswell, CounterQuantity::flops_scalar), nullptr);
  EXPECT_NE(std::find(haswell->lacking.begin(), haswell->lacking.end(),
                      "floating-point operations of cpu (Haswell): its counters count none"),
            haswell->lacking.end());
  const auto skylake = plan_of("skylake_sp");
  ASSERT_TRUE(skylake);
  EXPECT_TRUE(skylake->lacking.empty());
}

TEST(CounterGroups, machines_without_counters_or_of_unknown_ones_are_refused) {
  for (const char* machine : {"nehalem", "family_10h", "lunar_lake"}) {
    const auto plan = plan_of(machine);
    ASSERT_FALSE(plan) << machine;
    EXPECT_EQ(plan.error().code, ErrorCode::unsupported) << machine;
    EXPECT_EQ(plan.error().message.find('\n'), std::string::npos);
  }
  EXPECT_NE(plan_of("nehalem").error().message.find("model 26"), std::string::npos);
  MachineDescription guest;
  guest.virtual_machine = true;
  const auto none = counter_groups(guest, library());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::unsupported);
  EXPECT_NE(none.error().message.find("pmu=on"), std::string::npos);
}

TEST(CounterGroups, a_wish_by_quantity_family_and_event) {
  CounterWish wish;
  wish.names = {"l3_misses", "stalls", "cpu/event=0xd0,umask=0x21/"};
  const auto plan = plan_of("skylake_sp", wish);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_NE(find(*plan, CounterQuantity::l3_misses), nullptr);
  EXPECT_NE(find(*plan, CounterQuantity::stalls_load), nullptr);
  EXPECT_EQ(find(*plan, CounterQuantity::loads), nullptr);
  const CounterEvent* const named = find(*plan, CounterQuantity::other);
  ASSERT_NE(named, nullptr);
  EXPECT_EQ(named->row.name, "cpu/event=0xd0,umask=0x21/");
  EXPECT_EQ(named->attr.config, 0x21d0U);
  EXPECT_EQ(named->attr.sample_period, 0U);
  EXPECT_EQ(named->attr.exclude_kernel, 1U);
}

TEST(CounterGroups, a_name_that_is_none_is_refused_with_the_nearest) {
  CounterWish wish;
  wish.names = {"l3_mises"};
  const auto plan = plan_of("skylake_sp", wish);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(plan.error().message.find("l3_misses"), std::string::npos) << plan.error().message;
}

TEST(CounterNames, are_told_apart_at_commas_outside_of_terms) {
  EXPECT_EQ(counter_names("loads,cpu/event=0xd0,umask=0x21/u,flops"),
            (std::vector<std::string>{"loads", "cpu/event=0xd0,umask=0x21/u", "flops"}));
  EXPECT_EQ(counter_names("loads,"), (std::vector<std::string>{"loads", ""}));
}

/// Takes so many events that need a counter, and none with a config of `never`.
GroupTrial takes(unsigned counters, const std::set<std::uint64_t>& never = {}) {
  return [counters, never](std::span<const CounterEvent> group) {
    unsigned taken = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
      taken += group[i].counters;
      if (taken > counters || never.contains(group[i].attr.config)) {
        return GroupOutcome{EINVAL, i, Error{ErrorCode::unsupported, "the kernel refuses it"}};
      }
    }
    return GroupOutcome{};
  };
}

std::multiset<std::string> names_in(const CounterPlan& plan) {
  std::multiset<std::string> names;
  for (const CounterGroup& group : plan.groups) {
    for (const CounterEvent& event : group.events) {
      if (event.family != CounterFamily::base) {
        names.insert(event.row.name);
      }
    }
  }
  return names;
}

TEST(FitGroups, fewer_counters_than_planned_make_more_groups_with_the_same_events) {
  const auto plan = plan_of("skylake_sp");
  ASSERT_TRUE(plan);
  for (const unsigned counters : {1U, 2U, 3U, 4U}) {
    const auto fit = fit_groups(*plan, takes(counters));
    ASSERT_TRUE(fit);
    EXPECT_EQ(names_in(*fit), names_in(*plan)) << counters;
    for (const CounterGroup& group : fit->groups) {
      EXPECT_LE(counters_of(group), counters);
      EXPECT_EQ(group.events.front().row.quantity, CounterQuantity::cycles);
    }
    EXPECT_TRUE(fit->lacking.empty());
  }
}

TEST(FitGroups, an_event_that_is_refused_alone_is_lacking_with_the_reason) {
  const auto plan = plan_of("skylake_sp");
  ASSERT_TRUE(plan);
  const auto fit = fit_groups(*plan, takes(4, {0x412e}));
  ASSERT_TRUE(fit);
  EXPECT_EQ(find(*fit, CounterQuantity::l3_misses), nullptr);
  EXPECT_NE(find(*fit, CounterQuantity::l2_fills), nullptr);
  EXPECT_EQ(fit->lacking, std::vector<std::string>{"l3_misses of cpu: the kernel refuses it"});
}

TEST(FitGroups, without_cycles_there_is_nothing_and_the_reason_is_told) {
  const auto plan = plan_of("skylake_sp");
  ASSERT_TRUE(plan);
  int trials = 0;
  const auto fit = fit_groups(*plan, [&trials](std::span<const CounterEvent>) {
    ++trials;
    return GroupOutcome{EACCES, 0, Error{ErrorCode::permission, "kernel.perf_event_paranoid is 3"}};
  });
  ASSERT_FALSE(fit);
  EXPECT_EQ(fit.error().code, ErrorCode::permission);
  EXPECT_EQ(trials, 1) << "the unit's other groups have the same leader";
}

TEST(CounterRows, are_numbered_in_the_order_of_groups) {
  const auto plan = plan_of("zen4");
  ASSERT_TRUE(plan);
  const std::vector<profile::CounterRow> rows = counter_rows(*plan);
  std::size_t at = 0;
  for (std::size_t group = 0; group < plan->groups.size(); ++group) {
    for (const CounterEvent& event : plan->groups[group].events) {
      ASSERT_LT(at, rows.size());
      EXPECT_EQ(rows[at].id, at + 1);
      EXPECT_EQ(rows[at].group, group + 1);
      EXPECT_EQ(rows[at++].name, event.row.name);
    }
  }
  EXPECT_EQ(at, rows.size());
}

}  // namespace
}  // namespace crosstalk::collectors::counter_groups_test
