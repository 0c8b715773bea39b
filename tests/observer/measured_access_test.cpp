// SPDX-License-Identifier: Apache-2.0
// Samples of memory events in this very process: the processor's data is made up, the instructions are real.
#include "collectors/memory_samples/measured_access.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>

#include "collectors/observer/perf_types.h"
#include "collectors/observer/sample_view.h"
#include "collectors/pmu/memory_events.h"

namespace crosstalk::observer::measured_access_test {
namespace {

// Each at a multiple of 16, behind instructions that do nothing.
constexpr std::size_t load_at = 16;    // mov (%rax),%rcx; nop
constexpr std::size_t update_at = 32;  // lock addl $1,(%rax)
constexpr std::size_t none_at = 48;    // add %rax,%rcx
constexpr std::array<std::uint8_t, 64> make_code() {
  std::array<std::uint8_t, 64> bytes{};
  bytes.fill(0x90);
  const auto put = [&](std::size_t at, std::initializer_list<int> instruction) {
    for (const int byte : instruction) {
      bytes[at++] = static_cast<std::uint8_t>(byte);
    }
  };
  put(load_at, {0x48, 0x8b, 0x08});
  put(update_at, {0xf0, 0x83, 0x00, 0x01});
  put(none_at, {0x48, 0x01, 0xc1});
  return bytes;
}
alignas(64) constexpr std::array<std::uint8_t, 64> code = make_code();
std::uint64_t data = 0;

std::uint64_t at(std::size_t offset) { return reinterpret_cast<std::uint64_t>(code.data()) + offset; }

class MeasuredAccessTest : public testing::Test {
 protected:
  MeasuredAccessTest() : memory_(::getpid()), maps_(maps_of(::getpid())) {
    event_.source = profile::SourceKind::pebs;
    event_.weight_unit = profile::WeightUnit::accesses;
    event_.accesses = collectors::Accesses::loads;
    sample_.ip = at(load_at);
    sample_.exact_ip = true;
    sample_.address = reinterpret_cast<std::uint64_t>(&data);
    sample_.data_source = PERF_MEM_OP_LOAD;
    sample_.latency_cycles = 250;
  }
  Measured measure() {
    SampleView view(sample_, memory_, maps_);
    return measured_access(sample_, event_, {*finder_, view.reader()}, seen_);
  }

  TargetMemory memory_;
  std::vector<Mapping> maps_;
  collectors::MemoryEvent event_;
  PerfSample sample_;
  collectors::Observation seen_;
  std::unique_ptr<in_target::AccessFinder> finder_ = std::make_unique<in_target::AccessFinder>();
};

TEST_F(MeasuredAccessTest, TheInstructionSaysTheWidth) {
  ASSERT_EQ(measure(), Measured::access);
  EXPECT_EQ(seen_.address, sample_.address);
  EXPECT_EQ(seen_.kind, AccessKind::load);
  EXPECT_EQ(seen_.width, 8U);
  EXPECT_EQ(seen_.access_ip, at(load_at));
  EXPECT_TRUE(seen_.skid_known);
  EXPECT_EQ(seen_.latency_cycles, 250U);
  EXPECT_EQ(seen_.data_source, std::uint64_t{PERF_MEM_OP_LOAD});
  EXPECT_EQ(seen_.from, profile::AddressFrom::hardware);
  EXPECT_EQ(seen_.source, profile::SourceKind::pebs);
  EXPECT_EQ(seen_.weight_unit, profile::WeightUnit::accesses);
}

TEST_F(MeasuredAccessTest, AnUpdateIsOneAccessWhichItsLoadStandsFor) {
  sample_.ip = at(update_at);
  ASSERT_EQ(measure(), Measured::access);
  EXPECT_EQ(seen_.kind, AccessKind::load_store);
  EXPECT_EQ(seen_.width, 4U);
  sample_.data_source = PERF_MEM_OP_STORE;
  event_.accesses = collectors::Accesses::stores;
  EXPECT_EQ(measure(), Measured::half_an_update);
}

TEST_F(MeasuredAccessTest, WhereNothingIsSaidTheEventTellsTheKind) {
  sample_.data_source = 0;
  sample_.ip = at(none_at);  // its operands are no memory: the processor means another one
  event_.accesses = collectors::Accesses::stores;
  ASSERT_EQ(measure(), Measured::access);
  EXPECT_EQ(seen_.kind, AccessKind::store);
  EXPECT_EQ(seen_.width, 0U);
  event_.accesses = collectors::Accesses::both;
  seen_ = {};
  EXPECT_EQ(measure(), Measured::no_access);
}

TEST_F(MeasuredAccessTest, WithSkidTheAccessIsFoundByItsAddress) {
  sample_.exact_ip = false;
  sample_.ip = at(load_at) + 3;
  sample_.has_registers = true;
  sample_.registers[Register::rip] = sample_.ip;
  sample_.registers[Register::rax] = sample_.address;
  ASSERT_EQ(measure(), Measured::access);
  EXPECT_FALSE(seen_.skid_known);
  EXPECT_EQ(seen_.access_ip, at(load_at));
  EXPECT_EQ(seen_.width, 8U);
  sample_.registers[Register::rax] = sample_.address + 4096;  // another access than the one that was sampled
  seen_ = {};
  ASSERT_EQ(measure(), Measured::access);
  EXPECT_EQ(seen_.access_ip, 0U) << "nobody is blamed by guess";
  EXPECT_EQ(seen_.width, 0U);
}

TEST_F(MeasuredAccessTest, WhatIsNoAccessOfTheProgramIsDropped) {
  sample_.in_kernel = true;
  EXPECT_EQ(measure(), Measured::in_kernel);
  sample_.in_kernel = false;
  sample_.address = 0;
  EXPECT_EQ(measure(), Measured::no_access);
  sample_.address = 0xffff800000000000;
  EXPECT_EQ(measure(), Measured::no_access);
}

TEST_F(MeasuredAccessTest, IbsSaysMoreThanTheKernelMakesOfIt) {
  event_.source = profile::SourceKind::ibs;
  event_.accesses = collectors::Accesses::both;
  constexpr std::size_t capability_bytes = 4;
  std::array<std::uint64_t, 7> registers{};
  registers[1] = at(load_at);
  registers[4] = 1U | 1U << 7U | 1U << 17U | std::uint64_t{3} << 22U | std::uint64_t{90} << 32U;
  registers[5] = reinterpret_cast<std::uint64_t>(&data) + 4;
  std::array<std::byte, capability_bytes + sizeof registers> raw{};
  std::memcpy(raw.data() + capability_bytes, registers.data(), sizeof registers);
  sample_.raw = raw;
  sample_.ip = 0;
  sample_.exact_ip = false;
  sample_.address = 0;
  sample_.data_source = 0;
  ASSERT_EQ(measure(), Measured::access);
  EXPECT_EQ(seen_.ip, at(load_at));
  EXPECT_TRUE(seen_.skid_known);
  EXPECT_EQ(seen_.address, registers[5]);
  EXPECT_EQ(seen_.width, 4U);
  EXPECT_EQ(seen_.latency_cycles, 90U);
  perf_mem_data_src source{};
  source.val = seen_.data_source;
  EXPECT_EQ(source.mem_op, static_cast<unsigned>(PERF_MEM_OP_LOAD)) << "an old kernel has not said it";
  EXPECT_EQ(source.mem_lvl, static_cast<unsigned>(PERF_MEM_LVL_L1 | PERF_MEM_LVL_MISS));
  source.mem_lvl = PERF_MEM_LVL_HIT | PERF_MEM_LVL_L3;
  sample_.data_source = source.val;
  ASSERT_EQ(measure(), Measured::access);
  EXPECT_EQ(seen_.data_source, source.val) << "what the kernel says is more";
  registers[4] = 0;
  std::memcpy(raw.data() + capability_bytes, registers.data(), sizeof registers);
  EXPECT_EQ(measure(), Measured::no_access);
}

}  // namespace
}  // namespace crosstalk::observer::measured_access_test
