// SPDX-License-Identifier: Apache-2.0
// The catalogue's advice for loops of each kind; without evidence there is none.
#include "models/tuning_catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace crosstalk::models::tuning_catalogue_test {
namespace {

bool advises(const TuningEvidence& evidence, const std::string& section) {
  const std::vector<Remedy> found = remedies_for(evidence, 20);
  return std::any_of(found.begin(), found.end(), [&](const Remedy& remedy) {
    EXPECT_FALSE(remedy.title.empty() || remedy.why.empty() || remedy.evidence.empty());
    return remedy.section.find(section) != std::string::npos;
  });
}

bool has_title(const TuningEvidence& evidence, const std::string& beginning) {
  const std::vector<Remedy> found = remedies_for(evidence, 20);
  return std::any_of(found.begin(), found.end(),
                     [&](const Remedy& remedy) { return remedy.title.starts_with(beginning); });
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

TEST(TuningCatalogue, JumpsFromLineToLineAreToBeMendedFirst) {
  TuningEvidence evidence = busy_with(Unit::fpu, 0.3);
  evidence.packed = 0.0;
  evidence.imbalance = 0.9;
  CycleAccount waits;
  waits.at(CycleClass::data) = 0.7;
  evidence.waits = &waits;
  EXPECT_TRUE(has_title(evidence, "Let the compiler use vectors"));
  evidence.long_strides = LongStrides{1, 23168, 185344};
  EXPECT_TRUE(remedies_for(evidence, 1)[0].title.starts_with("Go through memory in order"));
  EXPECT_FALSE(has_title(evidence, "Let the compiler use vectors")) << "elements that lie apart fill none";
  waits.at(CycleClass::data) = 0.1;
  EXPECT_FALSE(has_title(evidence, "Go through memory in order")) << "it waits for little";
  waits.at(CycleClass::data) = 0.7;
  evidence.long_strides->lines_bytes = 8192;
  EXPECT_FALSE(has_title(evidence, "Go through memory in order")) << "the first-level cache holds these lines";
  evidence.long_strides = LongStrides{0.25, 23168, 185344};
  EXPECT_FALSE(has_title(evidence, "Go through memory in order")) << "most accesses do not";
}

TEST(TuningCatalogue, IndirectAccessIsToBeOrdered) {
  TuningEvidence evidence = busy_with(Unit::memory, 0.3);
  CycleAccount waits;
  waits.at(CycleClass::memory) = 0.7;
  evidence.waits = &waits;
  EXPECT_FALSE(advises(evidence, "5.3.1"));
  evidence.body.indirect = true;
  EXPECT_FALSE(advises(evidence, "5.3.1")) << "that samples stand at loads is no wait";
  evidence.local_share = 0.95;
  EXPECT_FALSE(advises(evidence, "5.3.1")) << "it would hardly be faster";
  evidence.local_share = 0.2;
  EXPECT_TRUE(advises(evidence, "5.3.1"));
  EXPECT_NE(remedies_for(evidence, 1)[0].evidence.find("would take 20 % of the time at most"), std::string::npos);
  EXPECT_TRUE(advises(evidence, "5.3.4"));  // no level at its limit: prefetch
}

TEST(TuningCatalogue, GathersCallsWaysAndSpillsAreNamed) {
  TuningEvidence evidence = busy_with(Unit::memory, 0.1);
  evidence.busy_class = BusyClass::under_tuned;
  evidence.gathers = 2;
  EXPECT_TRUE(advises(evidence, "5.5.3"));
  evidence.body.calls = true;
  EXPECT_FALSE(advises(evidence, "5.4.5")) << "what it calls may be the kernel's, or a library's";
  evidence.own_callees = {"step()", "norm()"};
  EXPECT_TRUE(advises(evidence, "5.4.5"));
  EXPECT_TRUE(has_title(evidence, "Have step() and norm() inlined"));
  evidence.body.one_way = false;
  EXPECT_FALSE(advises(evidence, "5.4.2")) << "how many ways were predicted wrongly was not measured";
  CycleAccount waits;
  waits.at(CycleClass::branch) = 0.3;
  evidence.waits = &waits;
  EXPECT_TRUE(advises(evidence, "5.4.2"));
  evidence.waits = nullptr;
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

TEST(TuningCatalogue, ALoopAtACachesLimitIsToWorkOnSmallerBlocks) {
  const auto is_advised = [](const TuningEvidence& evidence) { return has_title(evidence, "Work on smaller blocks"); };
  EXPECT_TRUE(is_advised(busy_with(Unit::l2, 0.95)));
  EXPECT_TRUE(is_advised(busy_with(Unit::l3, 0.95)));
  EXPECT_NE(remedies_for(busy_with(Unit::l3, 0.95), 1)[0].evidence.find("L3 is busy for 95 %"), std::string::npos);
  EXPECT_FALSE(is_advised(busy_with(Unit::memory, 0.95))) << "another block is to be of use there";
  EXPECT_FALSE(is_advised(busy_with(Unit::l1d, 0.95))) << "no cache is nearer";
  EXPECT_FALSE(is_advised(busy_with(Unit::l2, 0.5))) << "it has more to give";
}

TEST(TuningCatalogue, ALoopAtTheFirstLevelsLimitIsToAccessLessOften) {
  const auto is_advised = [](const TuningEvidence& evidence) { return has_title(evidence, "Access less often"); };
  TuningEvidence evidence = busy_with(Unit::l1d, 0.95);
  EXPECT_TRUE(is_advised(evidence));
  EXPECT_EQ(remedies_for(evidence, 1)[0].evidence, "L1D is busy for 95 % of the time.");
  evidence.access_bytes = 8;
  EXPECT_NE(remedies_for(evidence, 1)[0].evidence.find("8 bytes on average"), std::string::npos);
  EXPECT_FALSE(is_advised(busy_with(Unit::l1d, 0.5)));
}

TEST(TuningCatalogue, NarrowAccessesThatAreWaitedForAreToBeWider) {
  TuningEvidence evidence = busy_with(Unit::memory, 0.1);
  const auto is_advised = [&evidence] { return has_title(evidence, "Access less often"); };
  CycleAccount waits;
  waits.at(CycleClass::l1d) = 0.5;
  evidence.waits = &waits;
  evidence.widest_available = Width::avx2;
  EXPECT_FALSE(is_advised()) << "how wide they are is not known";
  evidence.access_bytes = 8;
  EXPECT_TRUE(is_advised());
  evidence.access_bytes = 32;
  EXPECT_FALSE(is_advised()) << "they are whole vectors";
  evidence.access_bytes = 8;
  evidence.widest_available.reset();
  EXPECT_FALSE(is_advised()) << "what the machine has is not known";
  evidence.widest_available = Width::avx2;
  waits.at(CycleClass::l1d) = 0.05;
  EXPECT_FALSE(is_advised()) << "they are hardly waited for";
}

TEST(TuningCatalogue, MultipliesAndAddsAreToBeFused) {
  TuningEvidence evidence = busy_with(Unit::fpu, 0.9);
  const auto is_advised = [&evidence] { return has_title(evidence, "Allow multiply-adds"); };
  EXPECT_FALSE(is_advised()) << "how many are is not known";
  evidence.multiply_adds = 0.0;
  EXPECT_TRUE(is_advised());
  evidence.multiply_adds = 0.8;
  EXPECT_FALSE(is_advised()) << "most are";
  evidence.multiply_adds = 0.0;
  evidence.other_flops = 0.7;
  EXPECT_FALSE(is_advised()) << "divisions cannot be fused";
  evidence.other_flops = 0.1;
  evidence.busy[Unit::fpu].of_effective = 0.3;
  EXPECT_FALSE(is_advised()) << "the units are not what it waits for";
}

TEST(TuningCatalogue, DivisionsAreToBeFewer) {
  TuningEvidence evidence = busy_with(Unit::fpu, 0.3);
  const auto is_advised = [&evidence] { return has_title(evidence, "Divide less"); };
  EXPECT_FALSE(is_advised()) << "what its operations are is not known";
  evidence.other_flops = 0.25;
  EXPECT_TRUE(is_advised());
  EXPECT_TRUE(advises(evidence, "5.4.4"));
  evidence.other_flops = 0.05;
  EXPECT_FALSE(is_advised());
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
}  // namespace crosstalk::models::tuning_catalogue_test
