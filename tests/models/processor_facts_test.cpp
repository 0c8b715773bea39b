// SPDX-License-Identifier: Apache-2.0
#include "models/processor_facts.h"

#include <gtest/gtest.h>

namespace crosstalk::models::processor_facts_test {
namespace {

Identity processor(const char* vendor, std::uint32_t family, std::uint32_t model) {
  Identity identity;
  identity.vendor = vendor;
  identity.family = family;
  identity.model = model;
  return identity;
}

constexpr double gigahertz = 1e9;

TEST(ProcessorFacts, FindsProcessorsByFamilyAndModel) {
  EXPECT_NE(facts_of(processor("AuthenticAMD", 0x19, 0x11)), nullptr);
  EXPECT_NE(facts_of(processor("GenuineIntel", 6, 0x6a)), nullptr);
  EXPECT_EQ(facts_of(processor("GenuineIntel", 6, 0x97)), nullptr) << "its cores differ";
  EXPECT_EQ(facts_of(processor("GenuineIntel", 0x19, 0x11)), nullptr);
  EXPECT_EQ(facts_of(processor("CentaurHauls", 6, 0x6a)), nullptr);
}

// Haswell: one adder, two multiply-add units of four doubles.
TEST(ProcessorFacts, GivesFlopsOfACore) {
  const CoreFacts& haswell = *facts_of(processor("GenuineIntel", 6, 0x3f));
  const auto of = [&](Width width, Operation operation) {
    return theoretical_flops(haswell, width, Precision::double_precision, operation, gigahertz);
  };
  EXPECT_EQ(of(Width::avx2, Operation::add), 4 * gigahertz);
  EXPECT_EQ(of(Width::avx2, Operation::fma), 16 * gigahertz);
  EXPECT_EQ(of(Width::scalar, Operation::fma), 4 * gigahertz);
  EXPECT_EQ(of(Width::avx512, Operation::fma), std::nullopt);
}

TEST(ProcessorFacts, DoesNotPromiseWhatCpuidDoesNotTell) {
  const CoreFacts& skylake_server = *facts_of(processor("GenuineIntel", 6, 0x55));
  EXPECT_EQ(theoretical_flops(skylake_server, Width::avx512, Precision::double_precision, Operation::fma, gigahertz),
            std::nullopt);
}

// Zen 4 loads 64 bytes and stores 32 in a cycle: a copy of 32 bytes takes one, a triad of 32 bytes as well.
TEST(ProcessorFacts, GivesBandwidthsOfTheFirstLevel) {
  const CoreFacts& zen4 = *facts_of(processor("AuthenticAMD", 0x19, 0x61));
  const auto of = [&](Level level, Traffic traffic) { return theoretical_bandwidth(zen4, level, traffic, gigahertz); };
  EXPECT_EQ(of(Level::l1d, Traffic::load), 64 * gigahertz);
  EXPECT_EQ(of(Level::l1d, Traffic::store), 32 * gigahertz);
  EXPECT_DOUBLE_EQ(*of(Level::l1d, Traffic::copy), 64 * gigahertz);
  EXPECT_DOUBLE_EQ(*of(Level::l1d, Traffic::triad), 96 * gigahertz);
  EXPECT_EQ(of(Level::l2, Traffic::load), 32 * gigahertz);
  EXPECT_EQ(of(Level::l2, Traffic::copy), std::nullopt);
  EXPECT_EQ(of(Level::memory, Traffic::load), std::nullopt);
}

}  // namespace
}  // namespace crosstalk::models::processor_facts_test
