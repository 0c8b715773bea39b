// SPDX-License-Identifier: Apache-2.0
// Each of the source's six application classes (table 1.1) is a candidate of the loops that section 1.6 names.
#include "models/application_class.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace crosstalk::models::application_class_test {
namespace {

using A = ApplicationClass;

constexpr LoopBody simple{20, true, false, false};
constexpr LoopBody complex_body{700, false, false, false};

ApplicationEvidence low(BusyClass busy_class, const LoopBody& body) {
  ApplicationEvidence e;
  e.busy_class = busy_class;
  e.flops = 1e9;
  e.bytes_to_flops = 0.1;
  e.balance = 0.4;
  e.multiply_adds = 0.1;
  e.body = body;
  return e;
}

std::vector<A> classes(const ApplicationEvidence& evidence) {
  std::vector<A> found;
  for (const ApplicationCandidate& candidate : application_candidates(evidence).candidates) {
    EXPECT_FALSE(candidate.evidence.empty());
    found.push_back(candidate.which);
  }
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
  return found;
}

TEST(ApplicationClass, FloatingPointUnitsAtTheirLimit) {
  ApplicationEvidence e = low(BusyClass::in_l2_fpu, simple);
  EXPECT_EQ(classes(e), (std::vector{A::low_bf_simple}));
  e.multiply_adds = 0.95;
  EXPECT_EQ(classes(e), (std::vector{A::matrix_multiplication, A::low_bf_simple}));
}

TEST(ApplicationClass, ACacheAtItsLimit) {
  for (const BusyClass c : {BusyClass::in_l2, BusyClass::in_l3, BusyClass::in_l1d}) {
    EXPECT_EQ(classes(low(c, complex_body)), (std::vector{A::cache_blocking}));
  }
  for (const BusyClass c : {BusyClass::in_l2, BusyClass::in_l3}) {
    EXPECT_EQ(classes(low(c, simple)), (std::vector{A::low_bf_simple, A::cache_blocking}));
  }
  EXPECT_EQ(classes(low(BusyClass::in_l1d, simple)), (std::vector{A::low_bf_simple})) << "as a short dot product";
}

TEST(ApplicationClass, NoUnitAtItsLimit) {
  EXPECT_EQ(classes(low(BusyClass::under_tuned, complex_body)), (std::vector{A::low_bf_complex}));
  EXPECT_EQ(classes(low(BusyClass::under_tuned, simple)), (std::vector{A::low_bf_simple}));
  const auto untold = application_candidates(low(BusyClass::in_l2_fpu, complex_body));
  EXPECT_TRUE(untold.candidates.empty());
  EXPECT_FALSE(untold.unknown.empty());
}

TEST(ApplicationClass, ManyBytesAnOperation) {
  ApplicationEvidence e = low(BusyClass::in_memory, simple);
  e.bytes_to_flops = std::numeric_limits<double>::infinity();
  EXPECT_EQ(
      application_candidates(e).candidates.at(0).evidence.find("It moves data and does no floating-point operation;"),
      0U);
  e.bytes_to_flops = 12;
  EXPECT_EQ(classes(e), (std::vector{A::high_bf_direct}));
  e.body.indirect = true;
  EXPECT_EQ(classes(e), (std::vector{A::high_bf_indirect}));
  e.body.indirect.reset();
  EXPECT_EQ(classes(e), (std::vector{A::high_bf_direct, A::high_bf_indirect}));
}

TEST(ApplicationClass, AnUpperLimitOfTheRatioIsEnoughForLow) {
  ApplicationEvidence e = low(BusyClass::in_l2_fpu, simple);
  e.bytes_to_flops.reset();
  e.bytes_to_flops_limit = 0.3;
  EXPECT_EQ(classes(e), (std::vector{A::low_bf_simple}));
  e.bytes_to_flops_limit = 3;
  const ApplicationCandidates open = application_candidates(e);
  EXPECT_TRUE(open.candidates.empty());
  EXPECT_NE(open.unknown.find("traffic with memory"), std::string::npos);
}

TEST(ApplicationClass, IntegerLoopsHaveNone) {
  ApplicationEvidence e = low(BusyClass::under_tuned, simple);
  e.flops = 0;
  e.bytes_to_flops.reset();
  EXPECT_NE(application_candidates(e).unknown.find("no floating-point"), std::string::npos);
  e.flops.reset();
  EXPECT_NE(application_candidates(e).unknown.find("is unknown"), std::string::npos);
}

TEST(ApplicationClass, ABodyIsSimpleOnlyIfAllOfItIsKnown) {
  EXPECT_EQ(is_simple(simple), true);
  EXPECT_EQ(is_simple({simple_instructions + 1, std::nullopt, std::nullopt, std::nullopt}), false);
  EXPECT_EQ(is_simple({20, true, true, false}), false);
  EXPECT_FALSE(is_simple({20, true, std::nullopt, false}));
}

}  // namespace
}  // namespace crosstalk::models::application_class_test
