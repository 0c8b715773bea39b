// SPDX-License-Identifier: Apache-2.0
// A record of our kernel module and perf's sample of the same registers give the same access; a context's set-up, and
// its ring.
#include "collectors/memory_samples/module_records.h"

#include <gtest/gtest.h>

#include <array>

#include "collectors/memory_samples/ibs_op.h"
#include "kmod/crosstalk_ibs.h"

namespace crosstalk::collectors::module_records_test {
namespace {

constexpr std::uint64_t loaded = 1, missed = 1U << 7U, address_valid = 1U << 17U, eight_bytes = 4U << 22U;

crosstalk_ibs_sample record_of_a_load() {
  crosstalk_ibs_sample record{};
  record.flags = CROSSTALK_IBS_S_USER | CROSSTALK_IBS_S_IP | CROSSTALK_IBS_S_LOAD | CROSSTALK_IBS_S_ADDRESS;
  record.time = 4711;
  record.pid = 10;
  record.tid = 11;
  record.cpu = 3;
  record.period = 250'000;
  record.ip = 0x401000;
  record.address = 0x7f0000001238;
  record.data[2] = loaded | missed | address_valid | eight_bytes | std::uint64_t{120} << 32U;
  return record;
}

TEST(ModuleSamples, AreDecodedAsPerfs) {
  std::array<std::byte, ibs_raw_bytes> raw{};
  raw.fill(std::byte{0xff});
  const PerfSample sample = perf_sample_of(record_of_a_load(), raw);
  EXPECT_EQ(sample.time_ns, 4711U);
  EXPECT_EQ(sample.tid, 11);
  EXPECT_EQ(sample.cpu, 3U);
  EXPECT_EQ(sample.period, 250'000U);
  EXPECT_FALSE(sample.in_kernel);
  EXPECT_TRUE(sample.exact_ip);
  EXPECT_FALSE(sample.has_registers);
  const auto op = decode_ibs_op(sample.raw);
  ASSERT_TRUE(op);
  EXPECT_EQ(op->ip, 0x401000U);
  EXPECT_EQ(op->address, 0x7f0000001238U);
  EXPECT_EQ(op->kind, AccessKind::load);
  EXPECT_EQ(op->width, 8U);
  EXPECT_TRUE(op->missed);
  EXPECT_EQ(op->latency_cycles, 120U);
}

TEST(ModuleSamples, WithoutAnInstruction) {
  crosstalk_ibs_sample record = record_of_a_load();
  record.flags &= ~(CROSSTALK_IBS_S_IP | CROSSTALK_IBS_S_USER);
  std::array<std::byte, ibs_raw_bytes> raw{};
  const PerfSample sample = perf_sample_of(record, raw);
  EXPECT_FALSE(sample.exact_ip);
  EXPECT_TRUE(sample.in_kernel);
  EXPECT_EQ(decode_ibs_op(sample.raw)->ip, 0U);
}

crosstalk_ibs_info some_module() {
  crosstalk_ibs_info info{};
  info.features = CROSSTALK_IBS_HAS_OP | CROSSTALK_IBS_HAS_COUNT_OPS;
  info.op_period_min = 1000;
  info.op_period_max = 100'000;
  info.records_min = 32;
  info.records_max = 1024;
  return info;
}

TEST(ModuleContexts, IntervalsAreDrawnWithinTheModulesBounds) {
  const crosstalk_ibs_info info = some_module();
  for (const auto& [period, kept, random] : std::initializer_list<std::array<std::uint64_t, 3>>{
           {10'000, 10'000, 2500}, {1100, 1100, 100}, {95'000, 95'000, 5000}, {1, 1000, 0}, {1'000'000, 100'000, 0}}) {
    const crosstalk_ibs_period drawn = drawn_around(info, period);
    EXPECT_EQ(drawn.period, kept) << period;
    EXPECT_EQ(drawn.random, random) << period;
  }
}

TEST(ModuleContexts, AreAskedForAsTheModuleCan) {
  crosstalk_ibs_info info = some_module();
  const crosstalk_ibs_setup setup = module_setup(info, 10'000, 64);
  EXPECT_EQ(setup.size, sizeof setup);
  EXPECT_EQ(setup.flavour, static_cast<std::uint32_t>(CROSSTALK_IBS_OP));
  EXPECT_EQ(setup.flags, CROSSTALK_IBS_COUNT_OPS);
  EXPECT_EQ(setup.period, 10'000U);
  EXPECT_EQ(setup.random, 2500U);
  EXPECT_EQ(setup.records, 64U);
  EXPECT_EQ(setup.signal, 0U);
  info.features = CROSSTALK_IBS_HAS_OP;
  EXPECT_EQ(module_setup(info, 10'000, 8).flags, 0U);
  EXPECT_EQ(module_setup(info, 10'000, 8).records, 32U);
}

TEST(ModuleRings, AreReadFromTheTailToTheHead) {
  constexpr std::uint64_t capacity = 32;
  alignas(page_bytes) static std::array<std::byte, page_bytes + capacity * sizeof(crosstalk_ibs_sample)> mapped{};
  auto& words = *reinterpret_cast<crosstalk_ibs_ring*>(mapped.data());
  auto* const records = reinterpret_cast<crosstalk_ibs_sample*>(mapped.data() + page_bytes);
  records[0].ip = 32;
  records[31].ip = 31;
  words.head = 33;
  words.tail = 31;
  words.lost = 5;
  ModuleRing ring(mapped);
  EXPECT_EQ(ring.capacity(), capacity);
  EXPECT_EQ(ring.head(), 33U);
  EXPECT_EQ(ring.tail(), 31U);
  EXPECT_EQ(ring.lost(), 5U);
  EXPECT_EQ(ring.record(31).ip, 31U);
  EXPECT_EQ(ring.record(32).ip, 32U) << "the first again";
  ring.give_back(33);
  EXPECT_EQ(words.tail, 33U);
}

}  // namespace
}  // namespace crosstalk::collectors::module_records_test
