// SPDX-License-Identifier: Apache-2.0
// What the catalogue advises of loops of each kind, and that it advises nothing without evidence.
#include "models/tuning_catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace crosstalk::models {
namespace {

bool advises(const TuningEvidence& evidence, const std::string& section) {
  const std::vector<Remedy> found = remedies_for(evidence, 20);
  return std::any_of(found.begin(), found.end(), [&](const Remedy& remedy) {
    EXPECT_FALSE(remedy.title.empty() || remedy.why.empty() || remedy.evidence.empty());
    return remedy.section.find(section) != std::string::npos;
  });
}

TuningEvidence busy_with(Unit unit, double part) {
  TuningEvidence evidence;
  evidence.elapsed_s = 1;
  evidence.busy[unit] = {part, part, part};
  const Classified found = classify(evidence.busy);
  evidence.busy_class = found.which;
  return evidence;
}

TEST(TuningCatalogue, WithoutEvidenceNothingIsAdvised) { EXPECT_TRUE(remedies_for({}).empty()); }

TEST(TuningCatalogue, ALoopAtMemorysLimitIsToBeBlocked) {
  TuningEvidence evidence = busy_with(Unit::memory, 0.95);
  EXPECT_TRUE(advises(evidence, "5.2.1"));
  EXPECT_FALSE(advises(evidence, "5.5.2"));
  evidence.stores_only_new = true;
  EXPECT_TRUE(advises(evidence, "5.5.2"));   // store past the caches
  EXPECT_FALSE(advises(evidence, "5.2.5"));  // prefetching moves no byte less
}

TEST(TuningCatalogue, ScalarArithmeticIsToUseVectors) {
  TuningEvidence evidence = busy_with(Unit::fpu, 0.9);
  evidence.packed = 0.0;
  evidence.widest_flops = Width::scalar;
  evidence.widest_available = Width::avx2;
  EXPECT_TRUE(advises(evidence, "5.3.2"));
  evidence.packed = 1.0;
  evidence.widest_flops = Width::avx2;
  EXPECT_FALSE(advises(evidence, "5.3.2"));
  EXPECT_TRUE(advises(evidence, "1.6"));  // nothing wider: do less
  evidence.widest_available = Width::avx512;
  EXPECT_FALSE(advises(evidence, "1.6"));
  EXPECT_NE(remedies_for(evidence, 1)[0].title.find("wider"), std::string::npos);
}

TEST(TuningCatalogue, AChainOfOperationsIsToBeBroken) {
  TuningEvidence evidence = busy_with(Unit::fpu, 0.12);
  evidence.chain_is_fpu = true;
  evidence.chain_share = 0.97;
  EXPECT_TRUE(advises(evidence, "5.4.12"));
  evidence.chain_share = 0.2;
  EXPECT_FALSE(advises(evidence, "5.4.12"));
  evidence.chain_share = 0.97;
  evidence.chain_is_fpu = false;  // integers, or a pointer chase
  EXPECT_FALSE(advises(evidence, "5.4.12"));
}

TEST(TuningCatalogue, IndirectAccessIsToBeOrdered) {
  TuningEvidence evidence = busy_with(Unit::memory, 0.3);
  CycleAccount waits;
  waits.at(CycleClass::memory) = 0.7;
  evidence.waits = &waits;
  EXPECT_FALSE(advises(evidence, "5.3.1"));
  evidence.body.indirect = true;
  EXPECT_TRUE(advises(evidence, "5.3.1"));
  EXPECT_TRUE(advises(evidence, "5.3.4"));  // no level at its limit: prefetch
}

TEST(TuningCatalogue, GathersCallsWaysAndSpillsAreNamed) {
  TuningEvidence evidence = busy_with(Unit::memory, 0.1);
  evidence.busy_class = BusyClass::under_tuned;
  evidence.gathers = 2;
  EXPECT_TRUE(advises(evidence, "5.5.3"));
  evidence.body.calls = true;
  EXPECT_TRUE(advises(evidence, "5.4.5"));
  evidence.body.one_way = false;
  EXPECT_TRUE(advises(evidence, "5.4.2"));
  evidence.body.instructions = 700;
  EXPECT_FALSE(advises(evidence, "5.2.2"));
  evidence.stack_accesses = 0.4;
  EXPECT_TRUE(advises(evidence, "5.2.2"));
  evidence.busy_class = BusyClass::in_memory;  // calls and spills do not matter there
  EXPECT_FALSE(advises(evidence, "5.2.2"));
  EXPECT_FALSE(advises(evidence, "5.4.5"));
}

TEST(TuningCatalogue, UnequalThreadsAreToBeBalanced) {
  TuningEvidence evidence = busy_with(Unit::memory, 0.1);
  evidence.imbalance = 0.4;
  EXPECT_TRUE(advises(evidence, "5.4.8"));
  evidence.imbalance = 0.02;
  EXPECT_FALSE(advises(evidence, "5.4.8"));
}

TEST(TuningCatalogue, GivesAFewTheWeightiestFirst) {
  TuningEvidence evidence = busy_with(Unit::memory, 0.95);
  evidence.stores_only_new = true;
  evidence.imbalance = 0.3;
  evidence.gathers = 1;
  const std::vector<Remedy> found = remedies_for(evidence, 2);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NE(found[0].section.find("5.2.1"), std::string::npos);
  EXPECT_NE(found[1].section.find("5.5.2"), std::string::npos);
}

}  // namespace
}  // namespace crosstalk::models
