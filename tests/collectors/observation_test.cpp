// SPDX-License-Identifier: Apache-2.0
#include "collectors/observation.h"

#include <gtest/gtest.h>

namespace crosstalk::collectors::observation_test {
namespace {

TEST(Observation, OfAClockIsWrittenAsTimeWithoutAnAccess) {
  Observation seen;
  seen.time_ns = 5000;
  seen.cpu_ns = seen.weight = 400;
  seen.ip = seen.registers[Register::rip] = 0x1234;
  seen.in_kernel = true;
  const profile::Sample record = record_of(seen);
  EXPECT_EQ(record.header.type, profile::RecordType::sample);
  EXPECT_EQ(record.time_ns, 5000U);
  EXPECT_EQ(record.cpu_ns, 400U);
  EXPECT_EQ(record.weight, 400U);
  EXPECT_EQ(record.weight_unit, profile::WeightUnit::ns);
  EXPECT_EQ(record.source, profile::SourceKind::clock);
  EXPECT_EQ(record.ip, 0x1234U);
  EXPECT_EQ(record.registers[Register::rip], 0x1234U);
  EXPECT_EQ(record.address, 0U);
  EXPECT_EQ(record.flags, profile::sample_in_kernel);
}

TEST(Observation, OfHardwareKeepsWhatItToldOfTheAccess) {
  Observation seen;
  seen.source = profile::SourceKind::pebs;
  seen.weight_unit = profile::WeightUnit::accesses;
  seen.weight = 10'007;
  seen.latency_cycles = 312;
  seen.data_source = 0x1e05080021;
  seen.ip = 0x1238;
  seen.access_ip = 0x1234;
  seen.address = 0x7fff0040;
  seen.width = 8;
  seen.kind = AccessKind::store;
  seen.from = profile::AddressFrom::hardware;
  seen.on_own_stack = true;
  const profile::Sample record = record_of(seen);
  EXPECT_EQ(record.source, profile::SourceKind::pebs);
  EXPECT_EQ(record.weight_unit, profile::WeightUnit::accesses);
  EXPECT_EQ(record.weight, 10'007U);
  EXPECT_EQ(record.latency_cycles, 312U);
  EXPECT_EQ(record.data_source, 0x1e05080021U);
  EXPECT_EQ(record.access_ip, 0x1234U);
  EXPECT_EQ(record.address, 0x7fff0040U);
  EXPECT_EQ(record.width, 8);
  EXPECT_EQ(record.access, AccessKind::store);
  EXPECT_EQ(record.from, profile::AddressFrom::hardware);
  EXPECT_EQ(record.flags, profile::sample_on_stack);
  EXPECT_EQ(record.watch, 0U);
}

}  // namespace
}  // namespace crosstalk::collectors::observation_test
