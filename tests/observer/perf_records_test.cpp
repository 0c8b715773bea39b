// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collectors/observer/perf_types.h"
#include "tests/observer/perf_bytes.h"

namespace crosstalk::observer::perf_records_test {
namespace {

TEST(PerfRecords, ASampleHasItsFieldsInTheKernelsOrder) {
  const Bytes bytes = sample_record({});
  const auto parsed = parse_perf_record(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->bytes, bytes.size());
  const auto& sample = std::get<PerfSample>(parsed->record);
  EXPECT_EQ(sample.event, 7U);
  EXPECT_EQ(sample.ip, 0x401000U);
  EXPECT_EQ(sample.pid, 10);
  EXPECT_EQ(sample.tid, 11);
  EXPECT_EQ(sample.time_ns, 1000U);
  EXPECT_EQ(sample.address, 0x5000U);
  EXPECT_EQ(sample.cpu, 1U);
  EXPECT_EQ(sample.count, 4'000'000U);
  EXPECT_FALSE(sample.in_kernel);
  ASSERT_TRUE(sample.has_registers);
  EXPECT_EQ(sample.registers[Register::rax], 100U);
  EXPECT_EQ(sample.registers[Register::rbx], 101U);
  EXPECT_EQ(sample.registers[Register::rcx], 102U);
  EXPECT_EQ(sample.registers[Register::rdx], 103U);
  EXPECT_EQ(sample.registers[Register::rsp], 107U);
  EXPECT_EQ(sample.registers[Register::rip], 108U);
  EXPECT_EQ(sample.flags, 109U);
  EXPECT_EQ(sample.registers[Register::r8], 110U);
  EXPECT_EQ(sample.registers[Register::r15], 117U);
  ASSERT_EQ(sample.stack.size(), 32U);
  EXPECT_EQ(sample.stack[31], std::byte{31});
}

TEST(PerfRecords, ASampleOfTheKernelSaysSo) {
  SampleText text;
  text.misc = PERF_RECORD_MISC_KERNEL;
  const auto parsed = parse_perf_record(sample_record(text));
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(std::get<PerfSample>(parsed->record).in_kernel);
}

TEST(PerfRecords, RegistersMayBeMissing) {
  SampleText text;
  text.abi = PERF_SAMPLE_REGS_ABI_NONE;
  text.stack_bytes = 0;
  const auto parsed = parse_perf_record(sample_record(text));
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(std::get<PerfSample>(parsed->record).has_registers);
  EXPECT_TRUE(std::get<PerfSample>(parsed->record).stack.empty());
}

TEST(PerfRecords, MoreStackThanThereIsIsNone) {
  SampleText text;
  text.stack_used = 65;
  const auto parsed = parse_perf_record(sample_record(text));
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(std::get<PerfSample>(parsed->record).stack.empty());
}

TEST(PerfRecords, ASampledAccessHasWhatItsEventSays) {
  MeasuredText text;
  text.raw = Bytes(60, std::byte{5});
  text.weight = std::uint64_t{3} << 32U | 77;
  const Bytes bytes = measured_record(text);
  const auto parsed = parse_perf_record(bytes, {measured_fields, true});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->bytes, bytes.size());
  const auto& sample = std::get<PerfSample>(parsed->record);
  EXPECT_EQ(sample.event, 9U);
  EXPECT_EQ(sample.address, 0x5040U);
  EXPECT_TRUE(sample.exact_ip);
  EXPECT_EQ(sample.period, 1000U);
  EXPECT_EQ(sample.count, 5000U);
  EXPECT_EQ(sample.enabled_ns, 300U);
  EXPECT_EQ(sample.running_ns, 200U);
  ASSERT_EQ(sample.raw.size(), 60U);
  EXPECT_EQ(sample.raw[59], std::byte{5});
  EXPECT_EQ(sample.latency_cycles, 77U) << "the first part of three";
  EXPECT_EQ(sample.data_source, 2U);
  EXPECT_FALSE(sample.has_registers);
}

TEST(PerfRecords, AnOldKernelsWeightIsTheLatencyAlone) {
  MeasuredText text;
  text.weight = std::uint64_t{1} << 40U;
  constexpr std::uint64_t fields = (measured_fields & ~std::uint64_t{PERF_SAMPLE_WEIGHT_STRUCT}) | PERF_SAMPLE_WEIGHT;
  const auto parsed = parse_perf_record(measured_record(text), {fields, true});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(std::get<PerfSample>(parsed->record).latency_cycles, UINT32_MAX) << "as much as there is room for";
}

TEST(PerfRecords, MoreOfAUnitsBytesThanThereAreIsRefused) {
  MeasuredText text;
  text.raw = Bytes(60);
  Bytes bytes = measured_record(text);
  const std::uint32_t huge = UINT32_MAX;
  constexpr std::size_t raw_size_at = sizeof(perf_event_header) + 10 * sizeof(std::uint64_t);
  std::memcpy(bytes.data() + raw_size_at, &huge, sizeof huge);
  EXPECT_FALSE(parse_perf_record(bytes, {measured_fields, true}));
}

TEST(PerfRecords, TheKernelSaysWhenItStopsSampling) {
  Bytes body;
  for (const std::uint64_t value : {std::uint64_t{4711}, std::uint64_t{9}, std::uint64_t{9}}) {  // time, id, stream
    put(body, value);
  }
  const auto stopped = parse_perf_record(record(PERF_RECORD_THROTTLE, 0, body));
  ASSERT_TRUE(stopped);
  EXPECT_TRUE(std::get<PerfThrottle>(stopped->record).begins);
  EXPECT_EQ(std::get<PerfThrottle>(stopped->record).time_ns, 4711U);
  const auto goes_on = parse_perf_record(record(PERF_RECORD_UNTHROTTLE, 0, body));
  ASSERT_TRUE(goes_on);
  EXPECT_FALSE(std::get<PerfThrottle>(goes_on->record).begins);
}

TEST(PerfRecords, LostSamplesAreLosses) {
  Bytes body;
  put(body, std::uint64_t{12});
  const auto lost = parse_perf_record(record(PERF_RECORD_LOST_SAMPLES, 0, body));
  ASSERT_TRUE(lost);
  EXPECT_EQ(std::get<PerfLost>(lost->record).records, 12U);
}

TEST(PerfRecords, ThreadsComeAndGo) {
  Bytes body;
  for (const std::uint32_t id : {1U, 2U, 3U, 4U}) {  // pid, parent's pid, tid, parent's tid
    put(body, id);
  }
  put(body, std::uint64_t{55});
  const auto fork = parse_perf_record(record(PERF_RECORD_FORK, 0, body));
  ASSERT_TRUE(fork);
  EXPECT_EQ(std::get<PerfFork>(fork->record).pid, 1);
  EXPECT_EQ(std::get<PerfFork>(fork->record).tid, 3);
  EXPECT_EQ(std::get<PerfFork>(fork->record).parent_tid, 4);
  EXPECT_EQ(std::get<PerfFork>(fork->record).time_ns, 55U);
  const auto exit = parse_perf_record(record(PERF_RECORD_EXIT, 0, body));
  ASSERT_TRUE(exit);
  EXPECT_EQ(std::get<PerfExit>(exit->record).tid, 3);
}

TEST(PerfRecords, ANewNameIsNoNewProgram) {
  Bytes body;
  put(body, std::uint32_t{1});
  put(body, std::uint32_t{2});
  put(body, std::uint64_t{0});  // the name
  const auto name = parse_perf_record(record(PERF_RECORD_COMM, 0, body));
  ASSERT_TRUE(name);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(name->record));
  const auto program = parse_perf_record(record(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, body));
  ASSERT_TRUE(program);
  EXPECT_EQ(std::get<PerfExec>(program->record).tid, 2);
}

TEST(PerfRecords, LossesAreCounted) {
  Bytes body;
  put(body, std::uint64_t{9});
  put(body, std::uint64_t{3});
  const auto lost = parse_perf_record(record(PERF_RECORD_LOST, 0, body));
  ASSERT_TRUE(lost);
  EXPECT_EQ(std::get<PerfLost>(lost->record).records, 3U);
}

TEST(PerfRecords, WhatNobodyAskedForIsPassedOver) {
  const auto other = parse_perf_record(record(4711, 0, Bytes(16)));
  ASSERT_TRUE(other);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(other->record));
  EXPECT_EQ(other->bytes, 24U);
}

TEST(PerfRecords, BytesThatCanNotBeARecordAreRefused) {
  EXPECT_FALSE(parse_perf_record({}));
  EXPECT_FALSE(parse_perf_record(Bytes(7)));
  EXPECT_FALSE(parse_perf_record(Bytes(8)));  // of size 0
  Bytes cut = sample_record({});
  cut.resize(cut.size() - 8);
  EXPECT_FALSE(parse_perf_record(cut));
  EXPECT_FALSE(parse_perf_record(record(PERF_RECORD_SAMPLE, 0, Bytes(64))));  // its fields end too early
  EXPECT_FALSE(parse_perf_record(record(PERF_RECORD_LOST, 0, Bytes(4))));     // not a multiple of 8
}

TEST(PerfRecords, AStackThatIsLongerThanTheRecordIsRefused) {
  SampleText text;
  Bytes bytes = sample_record(text);
  const std::uint64_t huge = UINT64_MAX - 7;
  std::memcpy(bytes.data() + bytes.size() - 8 - text.stack_bytes - 8, &huge, sizeof huge);
  EXPECT_FALSE(parse_perf_record(bytes));
}

}  // namespace
}  // namespace crosstalk::observer::perf_records_test
