// SPDX-License-Identifier: Apache-2.0
// The events of machines that are described in machines/.
#include "collectors/pmu/memory_events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/collectors/described_machine.h"

namespace crosstalk::collectors::memory_events_test {
namespace {

struct Expected {
  std::string unit, event;
  std::uint32_t type;
  std::uint64_t config, config1;
  std::uint64_t leader = 0;  // its config; 0: none
};

void expect_pebs(const std::string& name, const std::vector<Expected>& expected) {
  SCOPED_TRACE(name);
  const auto events = pebs_events(described(name), {1000, 2000, 3000, 30});
  ASSERT_TRUE(events) << events.error().message;
  ASSERT_EQ(events->size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const MemoryEvent& event = (*events)[i];
    SCOPED_TRACE(event.unit + "/" + event.name);
    EXPECT_EQ(event.unit, expected[i].unit);
    EXPECT_EQ(event.name, expected[i].event);
    EXPECT_EQ(event.attr.type, expected[i].type);
    EXPECT_EQ(event.attr.config, expected[i].config);
    EXPECT_EQ(event.attr.config1, expected[i].config1);
    EXPECT_EQ(event.attr.sample_period, event.accesses == Accesses::loads ? 1000U : 2000U);
    EXPECT_EQ(event.attr.precise_ip, 3U);
    EXPECT_EQ(event.attr.exclude_kernel, 1U);
    EXPECT_EQ(event.attr.inherit, 0U);
    EXPECT_EQ(event.attr.freq, 0U);
    EXPECT_EQ(event.source, profile::SourceKind::pebs);
    EXPECT_EQ(event.weight_unit, profile::WeightUnit::accesses);
    EXPECT_FALSE(event.each_cpu || event.period_random);
    EXPECT_TRUE(event.kernel_excluded);
    EXPECT_EQ(event.leader.has_value(), expected[i].leader != 0);
    EXPECT_EQ(event.leader ? event.leader->config : 0, expected[i].leader);
    EXPECT_EQ(event.attr.disabled, event.leader ? 0U : 1U) << "the leader of a group switches it";
  }
}

TEST(PebsEvents, OfEachGeneration) {
  const Expected loads{"cpu", "mem-loads", 4, 0x1cd, 30};
  const Expected old_stores{"cpu", "mem-stores", 4, 0x2cd, 0};
  const Expected stores{"cpu", "mem-stores", 4, 0x82d0, 0};
  expect_pebs("sandy_bridge", {loads, old_stores});
  expect_pebs("ivy_bridge_ep", {loads, old_stores});
  expect_pebs("haswell", {loads, stores});
  expect_pebs("broadwell_ep", {loads, stores});
  expect_pebs("skylake_sp", {loads, stores});
  expect_pebs("ice_lake_sp", {loads, stores});
  expect_pebs("sapphire_rapids", {{"cpu", "mem-loads", 4, 0x1cd, 30, 0x8203}, old_stores});
  expect_pebs("granite_rapids", {loads, old_stores});
  expect_pebs("alder_lake_n", {{"cpu", "mem-loads", 4, 0x5d0, 30}, {"cpu", "mem-stores", 4, 0x6d0, 0}});
}

TEST(PebsEvents, OfEachKindOfCore) {
  const Expected stores{"cpu_core", "mem-stores", 4, 0x2cd, 0};
  const Expected small_loads{"cpu_atom", "mem-loads", 10, 0x5d0, 30};
  const Expected small_stores{"cpu_atom", "mem-stores", 10, 0x6d0, 0};
  expect_pebs("alder_lake", {small_loads, small_stores, {"cpu_core", "mem-loads", 4, 0x1cd, 30, 0x8203}, stores});
  expect_pebs("lunar_lake", {small_loads, small_stores, {"cpu_core", "mem-loads", 4, 0x1cd, 30}, stores});
}

TEST(PebsEvents, FieldsAreThoseThatTheKernelKnows) {
  const auto before_parts = pebs_events(described("haswell"));  // Linux 5.10
  ASSERT_TRUE(before_parts);
  EXPECT_NE(before_parts->front().attr.sample_type & PERF_SAMPLE_WEIGHT, 0U);
  EXPECT_EQ(before_parts->front().attr.sample_type & PERF_SAMPLE_WEIGHT_STRUCT, 0U);
  const auto after = pebs_events(described("skylake_sp"));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->front().attr.sample_type & PERF_SAMPLE_WEIGHT, 0U) << "the kernel refuses both";
  EXPECT_NE(after->front().attr.sample_type & PERF_SAMPLE_WEIGHT_STRUCT, 0U);
  EXPECT_NE(after->front().attr.sample_type & PERF_SAMPLE_DATA_SRC, 0U);
}

std::string refusal(const Result<std::vector<MemoryEvent>>& events) {
  EXPECT_FALSE(events);
  return events ? "" : events.error().message;
}

TEST(PebsEvents, RefusedWithTheReason) {
  EXPECT_EQ(refusal(pebs_events(described("nehalem"))), "cpu has no event mem-stores");
  EXPECT_EQ(refusal(pebs_events(described("virtual_intel"))), "cpu takes precise_ip up to 0, 2 is needed");
  EXPECT_EQ(refusal(pebs_events(described("zen4"))), "not an Intel processor");
  MachineDescription half = described("alder_lake");
  std::erase_if(half.units, [](const PmuUnit& unit) { return unit.name != "cpu_atom" && unit.name != "cpu_core"; });
  for (PmuUnit& unit : half.units) {
    if (unit.name == "cpu_atom") {
      unit.events.erase("mem-stores");
    }
  }
  EXPECT_EQ(refusal(pebs_events(half)), "cpu_atom has no event mem-stores") << "half of the cores are not enough";
  MachineDescription none = described("skylake_sp");
  none.units.clear();
  EXPECT_EQ(refusal(pebs_events(none)), "no CPU PMU in /sys/bus/event_source/devices");
  none.virtual_machine = true;
  EXPECT_NE(refusal(pebs_events(none)).find("pmu=on"), std::string::npos);
}

TEST(PebsEvents, AFormatThatIsDamagedIsNamed) {
  MachineDescription machine = described("skylake_sp");
  for (PmuUnit& unit : machine.units) {
    if (unit.name == "cpu") {
      unit.format["umask"] = "config9:8-15";
    }
  }
  EXPECT_EQ(refusal(pebs_events(machine)), "cpu/mem-loads/: 'config9:8-15' is no place in an event");
}

MemoryEvent ibs_event(const std::string& name) {
  const auto events = ibs_events(described(name), {1000, 2000, 100'007, 30});
  EXPECT_TRUE(events) << name;
  EXPECT_EQ(events->size(), 1U) << name;
  MemoryEvent event = events->front();
  EXPECT_EQ(event.attr.type, 9U) << name;
  EXPECT_EQ(event.attr.config, 1U << 19U) << name << ": counts micro-ops, and filters nothing";
  EXPECT_EQ(event.attr.config1, 0U) << name;
  EXPECT_EQ(event.attr.sample_period, 100'000U) << name << ": whole sixteens";
  EXPECT_NE(event.attr.sample_type & PERF_SAMPLE_RAW, 0U) << name;
  EXPECT_EQ(event.weight_unit, profile::WeightUnit::micro_ops) << name;
  EXPECT_EQ(event.attr.precise_ip, 0U) << name;
  EXPECT_EQ(event.attr.exclude_hv, 0U) << name;
  EXPECT_TRUE(event.period_random) << name;
  return event;
}

TEST(IbsEvents, BeforeThreadsCouldHaveTheirOwn) {
  for (const char* const name : {"family_10h", "zen2"}) {
    EXPECT_TRUE(ibs_event(name).each_cpu) << name;
    EXPECT_FALSE(ibs_event(name).kernel_excluded) << name;
    EXPECT_EQ(ibs_event(name).attr.exclude_kernel, 0U) << name;
  }
}

TEST(IbsEvents, OfThreads) {
  for (const char* const name : {"zen3", "hygon"}) {
    EXPECT_FALSE(ibs_event(name).each_cpu) << name;
    EXPECT_FALSE(ibs_event(name).kernel_excluded) << name;
  }
}

TEST(IbsEvents, WithoutTheKernelWhereItFilters) {
  for (const char* const name : {"zen4", "zen5"}) {
    EXPECT_TRUE(ibs_event(name).kernel_excluded) << name;
    EXPECT_EQ(ibs_event(name).attr.exclude_kernel, 1U) << name;
    EXPECT_EQ(ibs_event(name).attr.config2, 1U) << name;
  }
}

TEST(IbsEvents, RefusedWithTheReason) {
  EXPECT_EQ(refusal(ibs_events(described("virtual_amd"))), "no ibs_op: virtual machines have none");
  EXPECT_EQ(refusal(ibs_events(described("skylake_sp"))), "not an AMD processor");
  MachineDescription cycles_only = described("zen2");
  for (PmuUnit& unit : cycles_only.units) {
    unit.format.erase("cnt_ctl");
  }
  EXPECT_EQ(refusal(ibs_events(cycles_only)), "ibs_op cannot count micro-ops, only cycles");
}

TEST(IbsEvents, APeriodIsNeverBelowWhatTheKernelTakes) {
  const auto events = ibs_events(described("zen3"), {1, 1, 1, 3});
  ASSERT_TRUE(events);
  EXPECT_EQ(events->front().attr.sample_period, 0x90U);
}

TEST(IbsModuleEvents, CountWhatTheModuleCounts) {
  MachineDescription machine = described("zen3");
  EXPECT_EQ(refusal(ibs_module_events(machine)), "/dev/crosstalk_ibs is not there");
  machine.ibs_module = IbsModule{false, true, 256, 10'000};
  MemorySampling wanted;
  wanted.op_period = 500'000;
  const auto events = ibs_module_events(machine, wanted);
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1U);
  EXPECT_EQ(events->front().source, profile::SourceKind::ibs_kmod);
  EXPECT_EQ(events->front().weight_unit, profile::WeightUnit::micro_ops);
  EXPECT_EQ(events->front().attr.sample_period, 10'000U);
  EXPECT_FALSE(events->front().each_cpu);
  machine.ibs_module->counts_ops = false;
  EXPECT_EQ(ibs_module_events(machine)->front().weight_unit, profile::WeightUnit::cycles);
}

std::vector<profile::SourceKind> kinds_of(const std::vector<SourceStep>& steps, bool possible) {
  std::vector<profile::SourceKind> kinds;
  for (const SourceStep& step : steps) {
    if (step.reason.empty() == possible) {
      kinds.push_back(step.source);
    }
  }
  return kinds;
}

TEST(Sources, TheBestFirstAndTheClockLast) {
  using Kinds = std::vector<profile::SourceKind>;
  using profile::SourceKind;
  EXPECT_EQ(kinds_of(sources_of(described("skylake_sp")), true), (Kinds{SourceKind::pebs, SourceKind::clock}));
  EXPECT_EQ(kinds_of(sources_of(described("nehalem")), true), Kinds{SourceKind::clock});
  EXPECT_EQ(kinds_of(sources_of(described("nehalem")), false), Kinds{SourceKind::pebs});
  EXPECT_EQ(kinds_of(sources_of(described("zen3")), true), (Kinds{SourceKind::ibs, SourceKind::clock}));
  MachineDescription loaded = described("zen3");
  loaded.ibs_module = IbsModule{false, true, 256, 1U << 20U};
  EXPECT_EQ(kinds_of(sources_of(loaded), true), (Kinds{SourceKind::ibs, SourceKind::ibs_kmod, SourceKind::clock}));
  MachineDescription without_perf = described("virtual_amd");
  without_perf.ibs_module = IbsModule{false, true, 256, 1U << 20U};
  EXPECT_EQ(kinds_of(sources_of(without_perf), true), (Kinds{SourceKind::ibs_kmod, SourceKind::clock}));
  without_perf.ibs_module->emulated = true;
  EXPECT_EQ(kinds_of(sources_of(without_perf), true), Kinds{SourceKind::clock}) << "samples that are made up";
  EXPECT_EQ(kinds_of(sources_of({}), true), Kinds{SourceKind::clock}) << "a machine that nothing is known of";
}

TEST(MachineDescription, AllMachinesAreRead) {
  std::size_t machines = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CROSSTALK_MACHINES)) {
    if (entry.path().extension() == ".txt") {
      const MachineDescription machine = described(entry.path().stem());
      EXPECT_FALSE(machine.vendor.empty()) << entry.path();
      EXPECT_NE(machine.family, 0U) << entry.path();
      EXPECT_TRUE(machine.kernel) << entry.path();
      EXPECT_FALSE(machine.units.empty()) << entry.path();
      ++machines;
    }
  }
  EXPECT_GE(machines, 15U);
}

TEST(MachineDescription, OfNothingIsEmpty) {
  const MachineDescription machine = describe_machine("/nonexistent");
  EXPECT_TRUE(machine.vendor.empty() && machine.units.empty() && !machine.kernel);
}

}  // namespace
}  // namespace crosstalk::collectors::memory_events_test
