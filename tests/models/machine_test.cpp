// SPDX-License-Identifier: Apache-2.0
#include "models/machine.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "machine_example.h"

namespace crosstalk::models::machine_test {
namespace {

TEST(Machine, KnowsLanesAndFlops) {
  EXPECT_EQ(lanes(Width::scalar, Precision::single_precision), 1U);
  EXPECT_EQ(lanes(Width::avx2, Precision::double_precision), 4U);
  EXPECT_EQ(lanes(Width::avx512, Precision::single_precision), 16U);
  EXPECT_EQ(flops(Width::sse, Precision::double_precision, Operation::add), 2U);
  EXPECT_EQ(flops(Width::avx512, Precision::double_precision, Operation::fma), 16U);
}

TEST(Machine, KnowsElements) {
  EXPECT_EQ(integer_lanes(Width::scalar, Element::int32), 1U);
  EXPECT_EQ(integer_lanes(Width::sse, Element::int64), 2U);
  EXPECT_EQ(integer_lanes(Width::avx512, Element::int32), 16U);
}

TEST(Machine, LacksFiguresWhereATableIsEmpty) {
  Machine m = test::example();
  EXPECT_FALSE(lacks_figures(m));
  EXPECT_EQ(count_refused(m), 2U) << "one vector's frequency, one buffer";
  m.groups.clear();
  EXPECT_TRUE(lacks_figures(m));
}

// In units of an array: a copy loads one, fetches and writes back the other.
TEST(Machine, CountsFetchesAndWriteBacksOfStores) {
  EXPECT_DOUBLE_EQ(1 * moved_per_requested(Level::l2, Traffic::store), 2);
  EXPECT_DOUBLE_EQ(2 * moved_per_requested(Level::memory, Traffic::copy), 3);
  EXPECT_DOUBLE_EQ(3 * moved_per_requested(Level::memory, Traffic::triad), 4);
  EXPECT_DOUBLE_EQ(3 * moved_per_requested(Level::memory, Traffic::triad_streaming), 3);
  EXPECT_DOUBLE_EQ(moved_per_requested(Level::l1d, Traffic::store), 1);
}

TEST(Machine, FindsFigures) {
  const Machine m = test::example();
  EXPECT_EQ(m.flops_of(Width::avx2, Precision::double_precision, Operation::fma, Scope::one_core)->value, 5.8e10);
  EXPECT_EQ(m.flops_of(Width::avx2, Precision::double_precision, Operation::fma, Scope::all_cores), nullptr);
  EXPECT_EQ(m.peak_flops(Precision::double_precision, Scope::one_core)->value, 5.8e10);
  EXPECT_EQ(m.peak_bandwidth(Level::memory, Scope::one_core)->value, 2.1e10) << "what a triad moves is not certain";
  EXPECT_EQ(m.peak_bandwidth(Level::l2, Scope::one_core), nullptr);
  EXPECT_EQ(m.pair_of(1, 0), m.pair_of(0, 1));
  EXPECT_EQ(m.pair_of(0, 2), nullptr);
  EXPECT_EQ(m.cache_of(3)->bytes, 33554432U);
}

TEST(Machine, ARefusedFigureIsNoPeak) {
  Machine m = test::example();
  m.bandwidths[3].bytes_per_s = Figure{};
  m.bandwidths[3].bytes_per_s.refused = "too busy";
  EXPECT_EQ(m.peak_bandwidth(Level::memory, Scope::one_core)->value, 2e10);
}

TEST(MachineCheck, TheExampleMakesSense) {
  const auto valid = validate(test::example());
  EXPECT_TRUE(valid) << valid.error().message;
}

struct Nonsense {
  const char* field;
  std::function<void(Machine&)> edit;
};

class MachineNonsense : public testing::TestWithParam<Nonsense> {};

TEST_P(MachineNonsense, IsRefusedNamingTheField) {
  Machine m = test::example();
  GetParam().edit(m);
  const auto valid = validate(m);
  ASSERT_FALSE(valid) << GetParam().field;
  EXPECT_TRUE(valid.error().message.starts_with(GetParam().field)) << valid.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, MachineNonsense,
    testing::Values(
        Nonsense{"flops[avx2, double, add, one_core].value", [](Machine& m) { m.flops[0].flops_per_s.value = -1; }},
        Nonsense{"flops[avx2, double, add, one_core].value",
                 [](Machine& m) { m.flops[0].flops_per_s.value = std::numeric_limits<double>::quiet_NaN(); }},
        Nonsense{"flops[avx2, double, fma, one_core].value", [](Machine& m) { m.flops[1].flops_per_s.value = 5.8e12; }},
        Nonsense{"flops[avx2, double, add, one_core].tries", [](Machine& m) { m.flops[0].flops_per_s.tries = 0; }},
        Nonsense{"flops[avx2, double, add, one_core]", [](Machine& m) { m.flops[0].flops_per_s.value.reset(); }},
        Nonsense{"flops[avx2, double, add, one_core]", [](Machine& m) { m.flops[0].flops_per_s.refused = "why"; }},
        Nonsense{"flops[avx2, double, add, one_core]", [](Machine& m) { m.flops.push_back(m.flops[0]); }},
        Nonsense{"bandwidths[l1d, load, one_core].spread", [](Machine& m) { m.bandwidths[0].bytes_per_s.spread = -1; }},
        Nonsense{"bandwidths[memory, load, one_core]", [](Machine& m) { m.bandwidths[1].bytes_per_s.value = 5e11; }},
        Nonsense{"latencies[memory]", [](Machine& m) { m.latencies[1].seconds.value = 5e-10; }},
        Nonsense{"latencies[memory].value", [](Machine& m) { m.latencies[1].seconds.value = 5; }},
        Nonsense{"chains[locked_add].disturbed", [](Machine& m) { m.chains[0].seconds.disturbed = 13; }},
        Nonsense{"chains[locked_add].median", [](Machine& m) { m.chains[0].seconds.median = 0; }},
        Nonsense{"frequency.tsc_hz", [](Machine& m) { m.frequency.tsc_hz = 3; }},
        Nonsense{"frequency.all_cores_hz.value", [](Machine& m) { m.frequency.all_cores_hz.value = 1e15; }},
        Nonsense{"pairs[1, 0]", [](Machine& m) { std::swap(m.pairs[0].a, m.pairs[0].b); }},
        Nonsense{"pairs[0, 7]", [](Machine& m) { m.pairs[0].b = 7; }},
        Nonsense{"processors", [](Machine& m) { m.processors.clear(); }},
        Nonsense{"processors", [](Machine& m) { m.processors[1].cpu = 0; }},
        Nonsense{"caches[level 2].bytes", [](Machine& m) { m.caches[2].bytes = 16384; }},
        Nonsense{"caches[level 1].line_bytes", [](Machine& m) { m.caches[0].line_bytes = 60; }},
        Nonsense{"caches[level 9]", [](Machine& m) { m.caches[0].level = 9; }}));

TEST(RefuseNonsense, TakesAwayOnlyWhatIsAbsurd) {
  Machine m = test::example();
  refuse_nonsense(m);
  EXPECT_TRUE(m.latencies[1].seconds.value && m.flops[0].flops_per_s.value);
  m.latencies[1].seconds.value = 5;
  m.flops[1].flops_per_s.value = 5.8e12;
  m.frequency.tsc_hz = 3;
  m.chains[0].seconds = {};
  refuse_nonsense(m);
  EXPECT_TRUE(validate(m)) << validate(m).error().message;
  EXPECT_EQ(m.latencies[1].seconds.value, std::nullopt);
  EXPECT_EQ(m.latencies[1].seconds.method, "example");
  EXPECT_NE(m.latencies[1].seconds.refused.find("no machine has 5"), std::string::npos);
  EXPECT_NE(m.flops[1].flops_per_s.refused.find("more than 2 times"), std::string::npos);
  EXPECT_TRUE(m.flops[1].flops_per_s.theoretical);
  EXPECT_EQ(m.frequency.tsc_hz, std::nullopt);
  EXPECT_FALSE(m.chains[0].seconds.refused.empty());
  EXPECT_TRUE(m.flops[0].flops_per_s.value);
}

TEST(RefuseNonsense, OfTwoThatContradictEachOtherTheSlowerOneGoes) {
  Machine m = test::example();
  m.latencies[1].seconds.value = 5e-10;      // memory's, and the first level's is 1 ns
  m.bandwidths[1].bytes_per_s.value = 5e11;  // memory's, and the first level's is 200 GB/s
  refuse_nonsense(m);
  EXPECT_TRUE(validate(m));
  EXPECT_EQ(m.latencies[0].seconds.value, std::nullopt);
  EXPECT_NE(m.latencies[0].seconds.refused.find("longer than that of memory"), std::string::npos);
  EXPECT_EQ(m.bandwidths[0].bytes_per_s.value, std::nullopt);
  EXPECT_TRUE(m.latencies[1].seconds.value && m.bandwidths[1].bytes_per_s.value);
}

TEST(MachineCheck, AMachineOfTheSameKindWillDo) {
  Machine other = test::example();
  other.host = "there";
  other.flops.clear();
  EXPECT_TRUE(check_same_machine(test::example(), other));
}

TEST(MachineCheck, AnotherMachineIsRefusedNamingWhatDiffers) {
  const auto message = [](const std::function<void(Machine&)>& edit) {
    Machine other = test::example();
    edit(other);
    const auto same = check_same_machine(test::example(), other);
    return same ? "the same" : same.error().message;
  };
  EXPECT_NE(message([](Machine& m) {
              m.identity.name = "Other";
            }).find("identity.name is 'Example 3000', and this machine's is 'Other'"),
            std::string::npos);
  EXPECT_NE(message([](Machine& m) { m.identity.model = 1; }).find("identity.model is 17"), std::string::npos);
  EXPECT_NE(message([](Machine& m) { m.identity.virtual_machine = false; }).find("identity.virtual_machine is true"),
            std::string::npos);
  EXPECT_NE(message([](Machine& m) { m.processors.pop_back(); }).find("the number of processors is 2"),
            std::string::npos);
  EXPECT_NE(message([](Machine& m) { m.processors[1].core = 0; }).find("processors differ"), std::string::npos);
  EXPECT_NE(message([](Machine& m) { m.caches.pop_back(); }).find("caches[level 3].bytes is 33554432"),
            std::string::npos);
  EXPECT_NE(message([](Machine& m) { m.caches.back().cpus = {0}; }).find("who shares them"), std::string::npos);
}

}  // namespace
}  // namespace crosstalk::models::machine_test
