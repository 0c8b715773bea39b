// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/named_event.h"

#include <gtest/gtest.h>

#include "tests/collectors/described_machine.h"

namespace crosstalk::collectors::named_event_test {
namespace {

using profile::SourceKind;
using profile::WeightUnit;

/// A library of three events.
EventLibrary some_library() {
  EventLibrary library;
  library.encode = [](const std::string& name) -> Result<perf_event_attr> {
    perf_event_attr attr{};
    if (name == "MEM_INST_RETIRED:ALL_STORES") {
      attr.type = PERF_TYPE_RAW;
      attr.config = 0x5382d0;
    } else if (name == "INST_RETIRED:ANY") {
      attr.type = PERF_TYPE_RAW;
      attr.config = 0x5300c0;
    } else if (name == "PAGE_FAULTS") {
      attr.type = PERF_TYPE_SOFTWARE;
      attr.config = PERF_COUNT_SW_PAGE_FAULTS;
    } else {
      return fail(ErrorCode::invalid_argument, "event not found");
    }
    return attr;
  };
  library.names = [] {
    return std::vector<std::string>{"INST_RETIRED:ANY", "MEM_INST_RETIRED:ALL_STORES", "PAGE_FAULTS"};
  };
  return library;
}

MemoryEvent named(const std::string& machine, const std::string& name) {
  const auto event = named_event(described(machine), some_library(), name, {1000, 2000, 3200, 30});
  EXPECT_TRUE(event) << name << ": " << event.error().message;
  return event.value_or(MemoryEvent{});
}

std::string refusal(const std::string& machine, const std::string& name) {
  const auto event = named_event(described(machine), some_library(), name);
  EXPECT_FALSE(event) << name;
  return event ? "" : event.error().message;
}

TEST(NamedEvent, InTheKernelsTerms) {
  const MemoryEvent event = named("skylake_sp", "cpu/event=0xcd,umask=0x1,ldlat=7/");
  EXPECT_EQ(event.attr.type, 4U);
  EXPECT_EQ(event.attr.config, 0x1cdU);
  EXPECT_EQ(event.attr.config1, 7U);
  EXPECT_EQ(event.attr.precise_ip, 3U) << "as high as the unit goes";
  EXPECT_EQ(event.attr.sample_period, 1000U);
  EXPECT_EQ(event.attr.exclude_kernel, 1U);
  EXPECT_EQ(event.attr.disabled, 1U);
  EXPECT_NE(event.attr.sample_type & PERF_SAMPLE_ADDR, 0U);
  EXPECT_EQ(event.source, SourceKind::pebs);
  EXPECT_EQ(event.weight_unit, WeightUnit::accesses);
  EXPECT_EQ(event.unit, "cpu");
  EXPECT_EQ(event.name, "cpu/event=0xcd,umask=0x1,ldlat=7/");
}

TEST(NamedEvent, AnEventOfTheUnitCanBeChanged) {
  EXPECT_EQ(named("skylake_sp", "cpu/mem-stores/pp").attr.config, 0x82d0U);
  EXPECT_EQ(named("skylake_sp", "cpu/mem-stores/pp").attr.precise_ip, 2U);
  EXPECT_EQ(named("skylake_sp", "cpu/mem-loads,ldlat=50/u").attr.config1, 50U);
}

TEST(NamedEvent, ALeastLatencyIsKnownHoweverItIsWritten) {
  EXPECT_EQ(named("skylake_sp", "cpu/mem-loads,ldlat=50/").least_latency, 50U);
  EXPECT_EQ(named("skylake_sp", "cpu/event=0xcd,umask=0x1,config1=0x32/pp").least_latency, 50U);
  EXPECT_EQ(named("skylake_sp", "cpu/mem-loads/").least_latency, 0U) << "3 cycles: no load takes less";
  EXPECT_EQ(named("skylake_sp", "cpu/mem-stores/").least_latency, 0U);
  EXPECT_EQ(named("alder_lake", "cpu_atom/mem-loads,ldlat=200/").least_latency, 200U);
}

TEST(NamedEvent, LoadsHaveTheLeaderThatTheirUnitAsksFor) {
  const MemoryEvent loads = named("sapphire_rapids", "cpu/mem-loads,ldlat=30/");
  ASSERT_TRUE(loads.leader);
  EXPECT_EQ(loads.leader->config, 0x8203U);
  EXPECT_EQ(loads.leader->disabled, 1U);
  EXPECT_EQ(loads.attr.disabled, 0U) << "the leader switches both";
  EXPECT_FALSE(named("sapphire_rapids", "cpu/mem-stores/").leader);
  EXPECT_FALSE(named("skylake_sp", "cpu/mem-loads,ldlat=30/").leader);
}

TEST(NamedEvent, OfALibrary) {
  const MemoryEvent stores = named("skylake_sp", "MEM_INST_RETIRED:ALL_STORES");
  EXPECT_EQ(stores.attr.config, 0x5382d0U);
  EXPECT_EQ(stores.weight_unit, WeightUnit::accesses);
  const MemoryEvent instructions = named("skylake_sp", "INST_RETIRED:ANY");
  EXPECT_EQ(instructions.source, SourceKind::counter);
  EXPECT_EQ(instructions.weight_unit, WeightUnit::occurrences);
  const MemoryEvent faults = named("zen4", "PAGE_FAULTS");
  EXPECT_EQ(faults.source, SourceKind::counter);
  EXPECT_EQ(faults.weight_unit, WeightUnit::occurrences);
  EXPECT_EQ(faults.attr.sample_period, 1000U);
  EXPECT_EQ(faults.attr.sample_type & PERF_SAMPLE_PERIOD, 0U) << "the kernel would sample each";
  EXPECT_NE(instructions.attr.sample_type & PERF_SAMPLE_PERIOD, 0U);
}

TEST(NamedEvent, IbsIsOpenedAsForAccesses) {
  const MemoryEvent zen2 = named("zen2", "ibs_op/cnt_ctl=1/");
  EXPECT_EQ(zen2.source, SourceKind::ibs);
  EXPECT_EQ(zen2.weight_unit, WeightUnit::micro_ops);
  EXPECT_TRUE(zen2.each_cpu);
  EXPECT_EQ(zen2.attr.sample_period, 3200U);
  const MemoryEvent zen4 = named("zen4", "ibs_op/l3missonly=1,cnt_ctl=1/");
  EXPECT_EQ(zen4.attr.config, std::uint64_t{1} << 19U | std::uint64_t{1} << 16U);
  EXPECT_EQ(zen4.attr.config2, 1U) << "the kernel's filter of user mode";
  EXPECT_EQ(zen4.attr.exclude_kernel, 1U);
  EXPECT_EQ(named("zen4", "ibs_op//").weight_unit, WeightUnit::cycles) << "what it counts by itself";
}

TEST(NamedEvent, FilteredSamplesOfIbsStandForNoNumber) {
  EXPECT_EQ(named("zen4", "ibs_op/l3missonly=1,cnt_ctl=1/").weight_unit, WeightUnit::occurrences);
  EXPECT_EQ(named("zen4", "ibs_op/l3missonly/").weight_unit, WeightUnit::occurrences);
  EXPECT_EQ(named("zen4", "ibs_op/config=0x90000/").weight_unit, WeightUnit::occurrences);
  EXPECT_EQ(named("zen4", "ibs_op/l3missonly=0,cnt_ctl=1/").weight_unit, WeightUnit::micro_ops);
  const MemoryEvent slow = named("zen5", "ibs_op/ldlat=256,cnt_ctl=1/");
  EXPECT_EQ(slow.weight_unit, WeightUnit::occurrences);
  EXPECT_EQ(slow.least_latency, 256U);
}

TEST(NamedEvent, FetchesOfInstructionsAreNoAccesses) {
  EXPECT_EQ(refusal("zen4", "ibs_fetch//"),
            "'ibs_fetch//' samples how instructions are fetched, not what they access; take ibs_op");
}

TEST(NamedEvent, AnUnknownNameIsRefusedWithTheNearest) {
  EXPECT_EQ(refusal("skylake_sp", "page_fault"),
            "'page_fault': event not found; the nearest: PAGE_FAULTS, INST_RETIRED:ANY, MEM_INST_RETIRED:ALL_STORES");
  EXPECT_EQ(refusal("skylake_sp", "cpu/mem-lods/").find("unit cpu has no 'mem-lods'; the nearest: mem-loads"), 0U);
  EXPECT_NE(refusal("zen4", "ibs/cnt_ctl=1/").find("no unit 'ibs'"), std::string::npos);
  EXPECT_NE(refusal("zen4", "ibs/cnt_ctl=1/").find("ibs_op"), std::string::npos);
  EXPECT_NE(refusal("skylake_sp", "cpu/event=0xcd").find("second slash"), std::string::npos);
  EXPECT_NE(refusal("skylake_sp", "cpu/event=0xcd/k").find("modifier 'k'"), std::string::npos);
  EXPECT_NE(refusal("skylake_sp", "cpu/event=0xcd/pppp").find("up to three"), std::string::npos);
  EXPECT_NE(refusal("skylake_sp", "cpu/event=x/").find("has no number"), std::string::npos);
  EXPECT_NE(refusal("virtual_amd", "ibs_op//").find("no unit 'ibs_op'"), std::string::npos);
}

TEST(NearestNames, AreThoseOfTheFewestEditsWhateverTheCase) {
  const std::vector<std::string> known = {"LOADS", "STORES", "CYCLES", "load-misses"};
  EXPECT_EQ(nearest_names("loads", known).front(), "LOADS");
  EXPECT_EQ(nearest_names("stroes", known).front(), "STORES");
  EXPECT_EQ(nearest_names("", known).size(), 3U);
  EXPECT_TRUE(nearest_names("loads", {}).empty());
  EXPECT_EQ(nearest_names(std::string(100'000, 'x'), known).size(), 3U);
}

TEST(Libpfm4, KnowsTheKernelsOwnEventsEverywhere) {
  const EventLibrary library = libpfm4();
  const auto faults = library.encode("PERF_COUNT_SW_PAGE_FAULTS");
  ASSERT_TRUE(faults) << faults.error().message;
  EXPECT_EQ(faults->type, static_cast<unsigned>(PERF_TYPE_SOFTWARE));
  EXPECT_EQ(faults->config, static_cast<unsigned>(PERF_COUNT_SW_PAGE_FAULTS));
  const std::vector<std::string> names = library.names();
  EXPECT_NE(std::find(names.begin(), names.end(), "PERF_COUNT_SW_PAGE_FAULTS"), names.end());
  const auto wrong = named_event({}, library, "PERF_COUNT_SW_PAGE_FALTS");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("the nearest: PERF_COUNT_SW_PAGE_FAULTS"), std::string::npos)
      << wrong.error().message;
}

}  // namespace
}  // namespace crosstalk::collectors::named_event_test
