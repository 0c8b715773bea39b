// SPDX-License-Identifier: Apache-2.0
#include <asm/perf_regs.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstring>
#include <vector>

#include "collectors/perf_import/event_units.h"
#include "collectors/perf_import/machine.h"
#include "collectors/perf_import/mappings.h"
#include "collectors/perf_import/sample_rows.h"

namespace crosstalk::perf_import::rows_test {
namespace {

using profile::SourceKind;
using profile::WeightUnit;

perf_data::Event event(std::uint32_t type, std::uint64_t config, unsigned precision = 0, const char* name = "") {
  perf_data::Event event;
  event.attribute.type = type;
  event.attribute.config = config;
  event.attribute.flags = std::uint64_t{precision} << 15U;
  event.name = name;
  return event;
}

perf_data::Features machine(const char* cpu, const char* pmu = "cpu", std::uint32_t type = PERF_TYPE_RAW) {
  perf_data::Features features;
  features.cpu_id = cpu;
  features.pmus.push_back({type, pmu});
  return features;
}

const char* const intel = "GenuineIntel,6,85,4";
const char* const amd = "AuthenticAMD,25,1,1";

void expect_unit(const EventUnit& unit, SourceKind source, WeightUnit weight, bool at_access) {
  EXPECT_EQ(unit.source, source);
  EXPECT_EQ(unit.unit, weight);
  EXPECT_EQ(unit.at_access, at_access);
}

TEST(PerfEventUnits, WhatASampleStandsFor) {
  const auto clock = event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
  expect_unit(unit_of(clock, machine(intel)), SourceKind::clock, WeightUnit::ns, false);
  const auto cycles = event(PERF_TYPE_HARDWARE, 0x400000000, 3);
  expect_unit(unit_of(cycles, machine(intel)), SourceKind::pebs, WeightUnit::cycles, true);
  expect_unit(unit_of(cycles, machine(amd)), SourceKind::counter, WeightUnit::cycles, true);
  const auto loads = event(PERF_TYPE_RAW, 0x1cd, 2, "cpu/mem-loads,ldlat=30/P");
  expect_unit(unit_of(loads, machine(intel)), SourceKind::pebs, WeightUnit::accesses, true);
  const auto stores = event(PERF_TYPE_RAW, 0x82d0, 1, "MEM_INST_RETIRED:ALL_STORES");
  expect_unit(unit_of(stores, machine(intel)), SourceKind::pebs, WeightUnit::accesses, false);
  expect_unit(unit_of(stores, machine(amd)), SourceKind::counter, WeightUnit::occurrences, false);
  const auto misses = event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES);
  expect_unit(unit_of(misses, machine(intel)), SourceKind::counter, WeightUnit::occurrences, false);
  const auto page_faults = event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
  expect_unit(unit_of(page_faults, machine(intel)), SourceKind::counter, WeightUnit::occurrences, false);
}

TEST(PerfEventUnits, IbsCountsMicroOperationsOrCycles) {
  constexpr std::uint32_t type = 11;
  const auto features = machine(amd, "ibs_op", type);
  expect_unit(unit_of(event(type, 1U << 19U), features), SourceKind::ibs, WeightUnit::micro_ops, true);
  expect_unit(unit_of(event(type, 0), features), SourceKind::ibs, WeightUnit::cycles, true);
  expect_unit(unit_of(event(type, 1U << 19U | 1U << 16U), features), SourceKind::ibs, WeightUnit::occurrences, true);
}

TEST(PerfEventUnits, TheNameOfAProcessorTellsItsFrequency) {
  const auto cycle = [](const char* description) {
    perf_data::Features features;
    features.cpu_description = description;
    return cycle_time_of(features);
  };
  EXPECT_EQ(cycle("Intel(R) Core(TM) i5-2467M CPU @ 1.60GHz").ps, 625U);
  EXPECT_TRUE(cycle("Intel(R) Core(TM) i5-2467M CPU @ 1.60GHz").nominal);
  for (const char* unknown : {"", "13th Gen Intel(R) Core(TM) i7-1365U", "@", "@ GHz", "x @ 1e99GHz", "y @ 0.0GHz"}) {
    EXPECT_EQ(cycle(unknown).ps, 1000U) << unknown;
    EXPECT_FALSE(cycle(unknown).nominal) << unknown;
  }
}

constexpr EventUnit loads_unit{SourceKind::pebs, WeightUnit::accesses, true};

TEST(PerfSampleRows, ALoadHasAddressLatencyAndSource) {
  perf_data::Record record;
  record.misc = PERF_RECORD_MISC_USER;
  record.identity = {10, 11, 5000, 3};
  perf_data::Sample sample;
  sample.ip = 0x401000;
  sample.address = 0x7000;
  sample.period = 1000;
  sample.weight = 250;
  sample.data_source = 0x68100142;
  const auto row = row_of(record, sample, loads_unit, {500, true});
  EXPECT_EQ(row.time_ns, 5000U);
  EXPECT_EQ(row.ip, 0x401000U);
  EXPECT_EQ(row.access_ip, 0x401000U);
  EXPECT_EQ(row.address, 0x7000U);
  EXPECT_EQ(row.access, AccessKind::load);
  EXPECT_EQ(row.from, profile::AddressFrom::hardware);
  EXPECT_EQ(row.cpu, 3U);
  EXPECT_EQ(row.cpu_ns, 0U);
  EXPECT_EQ(row.flags, 0U);
  EXPECT_EQ(row.measurement, (profile::Measurement{SourceKind::pebs, WeightUnit::accesses, 250, 1000, 0x68100142}));
  EXPECT_FALSE(row.registers);
  sample.data_source = PERF_MEM_OP_LOAD | PERF_MEM_OP_STORE;
  EXPECT_EQ(row_of(record, sample, loads_unit, {}).access, AccessKind::load_store);
  sample.data_source = PERF_MEM_OP_NA;
  EXPECT_EQ(row_of(record, sample, loads_unit, {}).access, AccessKind::none);
  record.identity.cpu = UINT32_MAX;
  EXPECT_EQ(row_of(record, sample, loads_unit, {}).cpu, profile::unknown_cpu);
}

TEST(PerfSampleRows, CyclesHaveTheirTimeAndAClockIsAClock) {
  perf_data::Record record;
  record.misc = PERF_RECORD_MISC_USER;
  perf_data::Sample sample;
  sample.period = 4000;
  auto row = row_of(record, sample, {SourceKind::counter, WeightUnit::cycles, false}, {500, true});
  EXPECT_EQ(row.cpu_ns, 2000U);
  EXPECT_EQ(row.weight().value, 4000U);
  EXPECT_EQ(row.time_weight_ns(), 2000U);
  row = row_of(record, sample, {SourceKind::clock, WeightUnit::ns, false}, {500, true});
  EXPECT_EQ(row.cpu_ns, 4000U);
  EXPECT_EQ(row.measurement, profile::Measurement{});
}

std::vector<std::byte> words(std::initializer_list<std::uint64_t> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(std::uint64_t));
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

TEST(PerfSampleRows, TheKernelIsCalledFromSomewhere) {
  perf_data::Record record;
  record.misc = PERF_RECORD_MISC_KERNEL;
  perf_data::Sample sample;
  sample.ip = 0xffffffff81000000;
  auto row = row_of(record, sample, loads_unit, {500, true});
  EXPECT_EQ(row.flags, profile::sample_in_kernel);
  EXPECT_EQ(row.ip, 0U);
  const auto chain = words({static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL), 0xffffffff81000000,
                            static_cast<std::uint64_t>(PERF_CONTEXT_USER), 0x401000, 0x402000});
  sample.call_chain = {chain, ByteOrder::little};
  EXPECT_EQ(row_of(record, sample, loads_unit, {500, true}).ip, 0x401000U);
  record.misc = PERF_RECORD_MISC_GUEST_USER;
  EXPECT_EQ(row_of(record, sample, loads_unit, {500, true}).ip, 0U);
}

TEST(PerfSampleRows, RegistersAreKeptWhereAllAreThere) {
  perf_data::Record record;
  record.misc = PERF_RECORD_MISC_USER;
  perf_data::Sample sample;
  sample.ip = 0x401000;
  constexpr std::uint64_t all = 0xff0fff;  // as perf asks for user registers of x86-64
  const auto values = words({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23});
  sample.user = {PERF_SAMPLE_REGS_ABI_64, all, {values, ByteOrder::little}};
  const auto row = row_of(record, sample, loads_unit, {500, true});
  ASSERT_TRUE(row.registers);
  EXPECT_EQ((*row.registers)[Register::rbx], static_cast<std::uint64_t>(PERF_REG_X86_BX));
  EXPECT_EQ((*row.registers)[Register::r15], static_cast<std::uint64_t>(PERF_REG_X86_R15));
  EXPECT_EQ((*row.registers)[Register::rip], 0x401000U);
  EXPECT_FALSE(row_of(record, sample, loads_unit, {500, false}).registers);
  sample.user.mask = all & ~std::uint64_t{1};
  EXPECT_FALSE(row_of(record, sample, loads_unit, {500, true}).registers);
}

TEST(PerfMappings, WhatTakesAPlaceEndsWhatWasThere) {
  CodeMappings mappings;
  const std::string name = "/lib/a.so";
  mappings.add({0x1000, 0x3000, 0, 5, 0, &name, nullptr});
  mappings.add({0x4000, 0x5000, 0, 6, 0, &name, nullptr});
  mappings.add({0x2000, 0x4000, 0, 7, 0, &name, nullptr});
  ASSERT_EQ(mappings.all().size(), 4U);
  EXPECT_EQ(mappings.all()[0].unloaded_ns, 7U);
  EXPECT_EQ(mappings.all()[1].unloaded_ns, 0U);
  EXPECT_EQ(mappings.all()[2].begin, 0x1000U);  // the rest of the first
  EXPECT_EQ(mappings.all()[2].end, 0x2000U);
  EXPECT_EQ(mappings.all()[2].loaded_ns, 7U);
  EXPECT_EQ(mappings.all()[2].unloaded_ns, 0U);
  EXPECT_EQ(mappings.all()[3].unloaded_ns, 0U);
}

TEST(PerfMappings, CodeWithoutAFileLeavesWhatLiesBesideIt) {
  CodeMappings mappings;
  const std::string name = "/lib/a.so";
  mappings.add({0x10000, 0x20000, 0x3000, 5, 0, &name, nullptr});
  mappings.end(0x14000, 0x18000, 9);
  ASSERT_EQ(mappings.all().size(), 3U);
  EXPECT_EQ(mappings.all()[0].unloaded_ns, 9U);
  EXPECT_EQ(mappings.all()[1].end, 0x14000U);
  EXPECT_EQ(mappings.all()[1].file_offset, 0x3000U);
  EXPECT_EQ(mappings.all()[2].begin, 0x18000U);
  EXPECT_EQ(mappings.all()[2].file_offset, 0xb000U);
  EXPECT_EQ(mappings.all()[2].unloaded_ns, 0U);
}

TEST(PerfMappings, AFileThatIsNotThereIsToBeAskedForItsAddresses) {
  ModuleRows rows;
  const std::string name = "/nowhere/a";
  const std::string id = "abcd";
  const auto low = rows.rows({}, {0x401000, 0x402000, 0x1000, 0, 0, &name, nullptr}, nullptr).at(0);
  EXPECT_EQ(low.bias, 0U);  // it is linked for where it is
  EXPECT_EQ(low.file_offset, 0x1000U);
  const auto high = rows.rows({}, {0x7f0000001000, 0x7f0000002000, 0x1000, 0, 0, &name, nullptr}, &id).at(0);
  EXPECT_EQ(high.file_offset, 0x1000U);
  EXPECT_EQ(high.bias, 0x7f0000000000U);
  EXPECT_EQ(high.build_id, "abcd");
}

TEST(PerfMappings, OnlyCodeOfFilesCounts) {
  perf_data::Mapping mapping;
  mapping.bytes = 0x1000;
  mapping.name = "/lib/a.so";
  EXPECT_TRUE(is_code_of_file(mapping));
  mapping.is_data = true;
  EXPECT_FALSE(is_code_of_file(mapping));
  mapping.has_protection = true;
  mapping.protection = 5;
  EXPECT_TRUE(is_code_of_file(mapping));
  for (const char* other : {"//anon", "[heap]", "/memfd:x", "", "anon_inode:[perf]"}) {
    mapping.name = other;
    EXPECT_FALSE(is_code_of_file(mapping)) << other;
  }
  mapping.name = "[vdso]";
  EXPECT_TRUE(is_code_of_file(mapping));
  mapping.begin = UINT64_MAX;
  EXPECT_FALSE(is_code_of_file(mapping));
  mapping.begin = 0;
  mapping.pid = -1;
  EXPECT_FALSE(is_code_of_file(mapping));
}

TEST(PerfMachine, ItsTopologyIsKept) {
  perf_data::Features features;
  features.command_line = {"perf", "record", "a b"};
  features.places = {{0, 0}, {1, 0}};
  features.caches = {{1, 32, "0"}, {2, 64, "0-1"}};
  features.numa = {{0, "0-1"}};
  profile::Session session;
  describe_machine(features, session);
  EXPECT_EQ(session.command, "perf record 'a b'");
  EXPECT_TRUE(profile::is_imported(session));
  EXPECT_EQ(session.line_bytes, 32U);
  EXPECT_EQ(session.topology, "0 0 0 0 -1 0;1 1 0 0 -1 0");
  features.numa = {{0, "0-4294967295"}};
  describe_machine(features, session);
  EXPECT_EQ(session.topology, "0 0 0 0 -1 -1;1 1 0 0 -1 -1");
}

}  // namespace
}  // namespace crosstalk::perf_import::rows_test
