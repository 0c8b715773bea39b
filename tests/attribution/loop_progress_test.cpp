// SPDX-License-Identifier: Apache-2.0
// Loops' progress from successive samples of threads, at places seen for the first time and again.
#include "attribution/loops/loop_progress.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "attribution/loops/loop_rates.h"
#include "tests/attribution/loop_function.h"
#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::loop_progress_test {
namespace {

constexpr std::uint64_t base = 0x400000;

// nest() at 0x100 counts rcx down around a loop that counts rax up to rsi; count() at 0x200 counts rdx up to rsi.
constexpr std::uint64_t outer = 0x100, inner = 0x102, inner_compare = 0x106, behind_inner = 0x10b, count = 0x200;
constexpr std::array<std::uint8_t, 0x12> nest_code = {0x31, 0xc0,              // 100: xor eax, eax
                                                      0x48, 0x83, 0xc0, 0x01,  // 102: add rax, 1
                                                      0x48, 0x39, 0xf0,        // 106: cmp rax, rsi
                                                      0x75, 0xf7,              // 109: jne 102
                                                      0x48, 0x83, 0xe9, 0x01,  // 10b: sub rcx, 1
                                                      0x75, 0xef,              // 10f: jne 100
                                                      0xc3};                   // 111: ret
constexpr std::array<std::uint8_t, 0xa> count_code = {0x48, 0x83, 0xc2, 0x01,  // 200: add rdx, 1
                                                      0x48, 0x39, 0xf2,        // 204: cmp rdx, rsi
                                                      0x75, 0xf7,              // 207: jne 200
                                                      0xc3};                   // 209: ret

struct State {
  std::uint64_t rax = 0, rcx = 0, rdx = 0, rsi = 1000, rsp = 0x7000;
};

class LoopProgressTest : public testing::Test {
 protected:
  LoopProgressTest() {
    code_.anatomies[{0, outer}] = &nest_.anatomy;
    code_.anatomies[{0, count}] = &count_.anatomy;
    code_.anatomies[{0, 0x300}] = nullptr;
  }

  /// A sample of the thread, every millisecond if nothing else is said.
  void sample(std::uint64_t at, const State& state, std::uint32_t thread = 0, std::uint64_t cpu_ns = 1'000'000) {
    profile::SampleRow row;
    row.thread = ThreadId{thread};
    row.time_ns = time_ns_ += cpu_ns;
    row.cpu_ns = cpu_ns;
    row.ip = base + at;
    Registers registers;
    registers[Register::rax] = state.rax, registers[Register::rcx] = state.rcx, registers[Register::rdx] = state.rdx;
    registers[Register::rsi] = state.rsi, registers[Register::rsp] = state.rsp;
    row.registers = registers;
    progress_->add(row);
  }

  /// Samples about every 4 ms of a thread that calls nest() again and again. A visit of the inner loop has 1000
  /// iterations and lasts `inner_visit_s`, one of the loop around a hundred of them.
  void sample_nest(double inner_visit_s, int samples) {
    std::mt19937 random(1);  // NOLINT: the same each time
    std::normal_distribution<double> normal;
    constexpr double trips = 1000;
    constexpr double visits = 100;
    double at_s = 0;
    for (int i = 0; i < samples; ++i) {
      const double interval_s = 4e-3 + 10e-6 * normal(random);
      at_s += interval_s;
      const double visit = std::floor(at_s / inner_visit_s);
      const double part = at_s / inner_visit_s - visit;
      sample(inner,
             {.rax = static_cast<std::uint64_t>(part * trips),
              .rcx = static_cast<std::uint64_t>(visits - std::fmod(visit, visits))},
             0, static_cast<std::uint64_t>(interval_s * 1e9));
    }
  }

  /// Rates of nest()'s loops, which have taken all the time: of the one around, and of the inner one.
  [[nodiscard]] std::vector<LoopRow> nest_rates() const {
    std::vector<LoopRow> loops(2);
    for (std::uint32_t i = 0; i < 2; ++i) {
      loops[i].id = i;
      loops[i].depth = i + 1;
      loops[i].header = i == 0 ? outer : inner;
      loops[i].cpu_s = static_cast<double>(time_ns_) * 1e-9;
    }
    loops[1].parent = 0;
    add_rates(loops, progress_->trails(), {}, view_);
    return loops;
  }

  [[nodiscard]] LoopTrail trail(std::uint64_t header) const {
    const auto found = progress_->trails().find({0, header});
    return found != progress_->trails().end() ? found->second : LoopTrail{};
  }

  std::vector<profile::ProcessRow> processes_{1};
  std::vector<profile::ThreadRow> threads_ = make_threads(2);
  std::vector<profile::ModuleRow> modules_{module_row("/bin/app", base, base + 0x1000, base)};
  AddressSpaces spaces_{processes_, modules_};
  Function nest_{outer, nest_code}, count_{count, count_code};
  FakeCode code_;
  ProgramView view_{processes_, threads_, spaces_, code_};
  std::optional<LoopProgress> progress_{view_};
  std::uint64_t time_ns_ = 0;
};

TEST_F(LoopProgressTest, StepsAreCountedBetweenWhateverPlacesOfALoop) {
  // At `inner_compare` the iteration has added one already. The same two places, seen again, tell the same.
  for (std::uint64_t i = 0; i < 3; ++i) {
    sample(inner, {.rax = 100 * i + 10, .rcx = 7});
    sample(inner_compare, {.rax = 100 * i + 31, .rcx = 7});
  }
  const LoopTrail inside = trail(inner);
  ASSERT_EQ(inside.steps.size(), 5U);
  EXPECT_EQ(inside.samples, 6U);
  EXPECT_TRUE(inside.counts);
  for (std::size_t i = 0; i < inside.steps.size(); ++i) {
    EXPECT_EQ(inside.steps[i].iterations, i % 2 == 0 ? 20 : 80) << i;
    EXPECT_TRUE(inside.steps[i].same && inside.steps[i].anchored) << i;
    EXPECT_EQ(inside.steps[i].visit, inside.steps[0].visit) << i;
    EXPECT_DOUBLE_EQ(inside.steps[i].cpu_s, 1e-3) << i;
  }
  ASSERT_EQ(trail(outer).steps.size(), 5U);
  EXPECT_EQ(trail(outer).steps[0].iterations, 0);
}

TEST_F(LoopProgressTest, WhenTheLoopAroundGoesOnTheInnerOneIsEnteredAnew) {
  sample(inner, {.rax = 10, .rcx = 7});
  sample(inner, {.rax = 10, .rcx = 4});
  ASSERT_EQ(trail(outer).steps.size(), 1U);
  EXPECT_EQ(trail(outer).steps[0].iterations, 3);
  EXPECT_TRUE(trail(inner).steps.empty());
  EXPECT_EQ(trail(inner).moved_on, 1U);
}

TEST_F(LoopProgressTest, TheInnerLoopTellsPartsOfIterationsOfTheLoopAround) {
  sample(inner, {.rax = 10, .rcx = 7});
  sample(inner, {.rax = 260, .rcx = 4});  // a quarter of an iteration, and three
  sample(inner_compare, {.rax = 11, .rcx = 3});
  sample(behind_inner, {.rax = 1000, .rcx = 3});
  const LoopTrail seen = trail(outer);
  ASSERT_EQ(seen.steps.size(), 3U);
  EXPECT_EQ(seen.steps[0].iterations, 3);
  ASSERT_TRUE(seen.steps[0].with_parts && seen.steps[1].with_parts);
  EXPECT_DOUBLE_EQ(*seen.steps[0].with_parts, 3.25);
  EXPECT_DOUBLE_EQ(*seen.steps[1].with_parts, 0.75);
  EXPECT_FALSE(seen.steps[2].with_parts);
}

TEST_F(LoopProgressTest, NoVisitGoesBackwardsInsideAnIterationOfIt) {
  sample(inner, {.rax = 300, .rcx = 7});
  sample(inner, {.rax = 200, .rcx = 7});
  ASSERT_EQ(trail(outer).steps.size(), 1U);
  EXPECT_FALSE(trail(outer).steps[0].same);
  EXPECT_EQ(trail(inner).moved_on, 1U);
}

TEST_F(LoopProgressTest, VisitsOfSomeSamplesOrOfLessThanOneHaveTheirRatesThroughTheLoopAround) {
  for (const double visit_s : {0.0093, 0.0058, 0.0031, 0.0007}) {
    progress_.emplace(view_);
    time_ns_ = 0;
    sample_nest(visit_s, 1000);
    const std::vector<LoopRow> loops = nest_rates();
    const Rate& around = loops[0].rates.iterations;
    const Rate& inside = loops[1].rates.iterations;
    ASSERT_TRUE(around.per_s) << visit_s << ": " << around.unknown;
    ASSERT_TRUE(inside.per_s) << visit_s << ": " << inside.unknown;
    EXPECT_TRUE(loops[1].rates.through_outer);
    EXPECT_NEAR(*around.per_s * visit_s, 1, 0.01) << visit_s;
    EXPECT_NEAR(*inside.per_s * visit_s / 1000, 1, 0.01) << visit_s;
    EXPECT_LE(inside.ci95->low * visit_s / 1000, 1) << visit_s;
    EXPECT_GE(inside.ci95->high * visit_s / 1000, 1) << visit_s;
  }
}

TEST_F(LoopProgressTest, WhereVisitsOfTheLoopAroundCanNotBeToldNoRateIsGiven) {
  sample_nest(0.00002, 400);  // a hundred of them in half a step
  const std::vector<LoopRow> loops = nest_rates();
  const std::string brief = "its visits are too short for the time between two samples";
  EXPECT_EQ(loops[0].rates.iterations.unknown, brief);
  EXPECT_EQ(loops[1].rates.iterations.unknown, brief + "; of the loop around it, " + brief);
  EXPECT_FALSE(loops[0].rates.iterations.per_s || loops[1].rates.iterations.per_s);
}

TEST_F(LoopProgressTest, APlaceOfTheLoopAroundAloneTellsNothingOfTheInnerOne) {
  sample(inner, {.rax = 10, .rcx = 7});
  sample(behind_inner, {.rax = 1000, .rcx = 7});
  sample(inner, {.rax = 10, .rcx = 7});
  EXPECT_EQ(trail(outer).steps.size(), 2U);
  EXPECT_EQ(trail(outer).samples, 3U);
  EXPECT_TRUE(trail(inner).steps.empty());
  EXPECT_EQ(trail(inner).samples, 2U);
}

TEST_F(LoopProgressTest, TripsAreReadAtEachSampleInside) {
  sample(inner, {.rcx = 7, .rsi = 50});
  sample(inner_compare, {.rcx = 7, .rsi = 60});
  sample(behind_inner, {.rcx = 7, .rsi = 70});  // no longer inside
  EXPECT_EQ(trail(inner).trips_read, 2U);
  EXPECT_EQ(trail(inner).trips_least, 50);
  EXPECT_EQ(trail(inner).trips_most, 60);
}

TEST_F(LoopProgressTest, WhereNoInstructionBeginsNothingIsRead) {
  sample(inner, {.rax = 10, .rcx = 7});
  sample(inner + 1, {.rax = 20, .rcx = 7});
  sample(inner, {.rax = 30, .rcx = 7});
  EXPECT_EQ(trail(inner).unreadable, 2U);
  EXPECT_EQ(trail(outer).unreadable, 2U);
  EXPECT_TRUE(trail(inner).steps.empty());
}

TEST_F(LoopProgressTest, ThreadsAreKeptApart) {
  sample(count, {.rdx = 10}, 0);
  sample(count, {.rdx = 500}, 1);
  sample(count, {.rdx = 15}, 0);
  sample(count, {.rdx = 507}, 1);
  const LoopTrail seen = trail(count);
  ASSERT_EQ(seen.steps.size(), 2U);
  EXPECT_EQ(seen.steps[0].iterations, 5);
  EXPECT_EQ(seen.steps[1].iterations, 7);
  EXPECT_NE(seen.steps[0].visit, seen.steps[1].visit);
}

TEST_F(LoopProgressTest, ALoopWaitsForTheFunctionThatItCalled) {
  sample(count, {.rdx = 10, .rsp = 0x7000});
  sample(inner, {.rax = 1, .rcx = 7, .rsp = 0x6f00});  // called: its frame lies below
  sample(0x300, {.rsp = 0x6e00});                      // code without known loops
  sample(0x5000, {.rsp = 0x6e00});                     // in no module
  sample(count, {.rdx = 17, .rsp = 0x7000});
  const LoopTrail seen = trail(count);
  ASSERT_EQ(seen.steps.size(), 1U);
  EXPECT_EQ(seen.steps[0].iterations, 7);
  EXPECT_DOUBLE_EQ(seen.steps[0].cpu_s, 4e-3);
  EXPECT_DOUBLE_EQ(seen.steps[0].callees_s, 3e-3);
  // A frame that returned in between has begun another visit when it is seen again.
  sample(inner, {.rax = 2, .rcx = 7, .rsp = 0x6f00});
  EXPECT_TRUE(trail(inner).steps.empty());
}

}  // namespace
}  // namespace crosstalk::attribution::test::loop_progress_test
