// SPDX-License-Identifier: Apache-2.0
// A record of our kernel module and perf's sample of the same registers give the same access.
#include "collectors/observer/module_sampler.h"

#include <gtest/gtest.h>

#include <array>

#include "collectors/memory_samples/ibs_op.h"
#include "kmod/crosstalk_ibs.h"

namespace crosstalk::observer::module_sampler_test {
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
  const PerfSample sample = perf_sample_of(record_of_a_load(), raw);
  EXPECT_EQ(sample.time_ns, 4711U);
  EXPECT_EQ(sample.tid, 11);
  EXPECT_EQ(sample.cpu, 3U);
  EXPECT_EQ(sample.period, 250'000U);
  EXPECT_FALSE(sample.in_kernel);
  EXPECT_TRUE(sample.exact_ip);
  EXPECT_FALSE(sample.has_registers);
  const auto op = collectors::decode_ibs_op(sample.raw);
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
  EXPECT_EQ(collectors::decode_ibs_op(sample.raw)->ip, 0U);
}

}  // namespace
}  // namespace crosstalk::observer::module_sampler_test
