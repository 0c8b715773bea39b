// SPDX-License-Identifier: Apache-2.0
// Tests when two samples lie in one visit of a loop, and the statistics of many of them.
#include "attribution/loops/loop_rates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace crosstalk::attribution::loop_rates_test {
namespace {

using symbolizer::LoopMoment;

constexpr auto rax = static_cast<std::size_t>(Register::rax);
constexpr auto rdi = static_cast<std::size_t>(Register::rdi);
constexpr auto rsi = static_cast<std::size_t>(Register::rsi);
constexpr auto rsp = static_cast<std::size_t>(Register::rsp);

/// A loop with an index in rax (step 1), a pointer in rdi (step 8), a bound in rsi.
LoopMoment moment(std::uint64_t index, std::uint64_t pointer) {
  LoopMoment m;
  m.fixed = 1U << rsp | 1U << rsi;
  m.counters = 1U << rax | 1U << rdi;
  m.value[rsp] = 0x7000, m.value[rsi] = 1000000;
  m.value[rax] = index, m.value[rdi] = pointer;
  m.step[rax] = 1, m.step[rdi] = 8;
  return m;
}

void expect_visit(Visit visit, const LoopMoment& from, const LoopMoment& to) {
  EXPECT_EQ(progress_between(from, to).visit, visit);
}

TEST(Progress, CountersThatAgreeGiveTheIterations) {
  const Progress progress = progress_between(moment(100, 0x1000), moment(150, 0x1000 + 50 * 8));
  EXPECT_EQ(progress.visit, Visit::same);
  EXPECT_EQ(progress.iterations, 50);
  EXPECT_EQ(progress_between(moment(1, 8), moment(1, 8)).iterations, 0);
}

TEST(Progress, AnyDoubtIsAnotherVisit) {
  expect_visit(Visit::another, moment(100, 0x1000), moment(50, 0x1000 - 50 * 8));       // backwards
  expect_visit(Visit::another, moment(100, 0x1000), moment(150, 0x1000 + 60 * 8));      // counters differ
  expect_visit(Visit::another, moment(100, 0x1000), moment(150, 0x1000 + 50 * 8 + 4));  // no whole step
  LoopMoment to = moment(150, 0x1000 + 50 * 8);
  to.value[rsi] = 999999;
  expect_visit(Visit::another, moment(100, 0x1000), to);  // another bound
  to = moment(150, 0x1000 + 50 * 8);
  to.value[rsp] = 0x6ff0;
  expect_visit(Visit::another, moment(100, 0x1000), to);  // another frame
  to = moment(150, 0x1000 + 50 * 8);
  to.step[rdi] = 16;
  expect_visit(Visit::another, moment(100, 0x1000), to);  // another stride
}

TEST(Progress, WithoutFrameOrCounterNothingIsKnown) {
  LoopMoment to = moment(150, 0x1000 + 50 * 8);
  to.fixed = 1U << rsi;
  expect_visit(Visit::unknown, moment(100, 0x1000), to);
  to = moment(150, 0x1000 + 50 * 8);
  to.counters = 0;
  expect_visit(Visit::unknown, moment(100, 0x1000), to);
}

TEST(Progress, CountsDownAndHalfRegistersWrap) {
  LoopMoment from = moment(100, 0);
  from.counters = from.narrow = 1U << rax;
  from.step[rax] = -3;
  LoopMoment to = from;
  from.value[rax] = 0xffffffff00000002;  // the upper half says nothing
  to.value[rax] = 0xffffffff;            // 1 iteration further: -1
  EXPECT_EQ(progress_between(from, to).iterations, 1);
  expect_visit(Visit::another, to, from);
}

TEST(Progress, AHalfRegisterIsCheckedAgainstAWholeOne) {
  LoopMoment from = moment(0, 0x1000);
  from.narrow = 1U << rax;
  LoopMoment to = from;
  const std::uint64_t n = (1ULL << 32U) + 5;  // more than a half register counts
  to.value[rax] = 5;
  to.value[rdi] += n * 8;
  EXPECT_EQ(progress_between(from, to).iterations, static_cast<double>(n));
  to.value[rax] = 6;
  expect_visit(Visit::another, from, to);
}

/// Samples of a loop that is visited again and again, alike, at intervals of 4 ms that differ by 10 us or so.
struct Repeated {
  double visit_s = 1, speed = 1e9, interval_s = 4e-3, jitter_s = 10e-6, noise = 0;
  double clock_noise_s = 0;  // measured, but nothing ran
  std::size_t samples = 400;
  unsigned seed = 1;

  [[nodiscard]] std::vector<LoopStep> steps() const {
    std::mt19937 random(seed);  // NOLINT: the same each time
    std::normal_distribution<double> normal;
    std::mt19937 other(~seed);
    std::uniform_real_distribution<double> disturbance(0, clock_noise_s);
    std::vector<LoopStep> result;
    double position = 0;
    double visit = 0;
    for (std::size_t i = 0; i < samples; ++i) {
      const double dt = interval_s + jitter_s * normal(random);
      const double after = position + dt * (1 + noise * normal(random));
      const double left = std::floor(after / visit_s);
      const double to = after - left * visit_s;
      LoopStep step;
      step.cpu_s = dt + disturbance(other);
      step.same = to >= position;  // all that registers tell
      step.iterations = step.same ? std::floor(to * speed) - std::floor(position * speed) : 0;
      visit += step.same ? 0 : 1;
      step.visit = static_cast<std::uint32_t>(visit);
      position = to;
      result.push_back(step);
    }
    return result;
  }
};

TEST(Judge, LongVisitsAreSound) {
  EXPECT_EQ(judge(Repeated{}.steps()), Verdict::sound);
  EXPECT_EQ(judge(Repeated{.visit_s = 0.06}.steps()), Verdict::sound);
  EXPECT_EQ(judge(Repeated{.visit_s = 0.06, .noise = 0.02}.steps()), Verdict::sound);
}

TEST(Judge, ShortVisitsAreNot) {
  for (const double visit : {0.0001, 0.0007, 0.0013, 0.0026, 0.005, 0.007}) {
    EXPECT_NE(judge(Repeated{.visit_s = visit}.steps()), Verdict::sound) << visit;
  }
}

TEST(Judge, VisitsThatBeatWithTheClockAreFoundOut) {
  for (const double visit : {0.00399, 0.0039, 0.0035, 0.00199, 0.0019, 0.00133, 0.00099}) {
    EXPECT_EQ(judge(Repeated{.visit_s = visit}.steps()), Verdict::too_short) << visit;
    EXPECT_NE(judge(Repeated{.visit_s = visit, .noise = 0.01}.steps()), Verdict::sound) << visit;
    EXPECT_NE(judge(Repeated{.visit_s = visit, .jitter_s = 0}.steps()), Verdict::sound) << visit;
  }
}

TEST(Judge, VisitsOfUnevenLengthAreNotSoundByChance) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    for (const double visit : {0.0039, 0.0037, 0.0019, 0.0018}) {
      EXPECT_NE(judge(Repeated{.visit_s = visit, .noise = 0.05, .seed = seed}.steps()), Verdict::sound)
          << visit << ", seed " << seed;
    }
  }
}

TEST(Judge, AClockDisturbedLessThanItDiffersMisleadsNobody) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    for (const double visit : {0.0039, 0.0037, 0.0019, 0.0018}) {
      EXPECT_NE(judge(Repeated{.visit_s = visit, .clock_noise_s = 2.5e-5, .seed = seed}.steps()), Verdict::sound)
          << visit << ", seed " << seed;
    }
  }
}

TEST(Judge, WithoutDifferencesBetweenIntervalsItIsNotToldWhatIsSound) {
  EXPECT_EQ(judge(Repeated{.visit_s = 0.06, .jitter_s = 0}.steps()), Verdict::ambiguous);
}

TEST(Judge, AFewStepsSayNothing) {
  EXPECT_EQ(judge(Repeated{.samples = 7}.steps()), Verdict::too_few);
  EXPECT_EQ(judge({}), Verdict::too_few);
}

TEST(Speed, IsTheTrueOneWithinItsInterval) {
  const auto speed = speed_of(Repeated{.visit_s = 0.06, .speed = 3.5e8, .noise = 0.02}.steps(), 1.6);
  ASSERT_TRUE(speed);
  EXPECT_NEAR(speed->per_s, 3.5e8, 0.004 * 3.5e8);
  EXPECT_LT(speed->ci95.low, 3.5e8);
  EXPECT_GT(speed->ci95.high, 3.5e8);
  EXPECT_LT(speed->ci95.high - speed->ci95.low, 0.01 * 3.5e8);
  EXPECT_GT(speed->ci95.high - speed->ci95.low, 1e-4 * 3.5e8);
}

TEST(Speed, SlowVisitsDoNotCountForTooMuch) {
  // 10 fast visits of 3 samples and 10 slow ones of 6, of 30e6 iterations each and as long as their samples say.
  std::vector<LoopStep> steps;
  for (std::uint32_t visit = 0; visit < 20; ++visit) {
    const int samples = visit % 2 == 0 ? 3 : 6;
    for (int i = 1; i < samples; ++i) {
      steps.push_back({0.004, 0, 30e6 / samples, true, false, visit});
    }
  }
  const auto speed = speed_of(steps, 20 * 4.5 * 0.004);
  ASSERT_TRUE(speed);
  EXPECT_NEAR(speed->per_s, 20 * 30e6 / (20 * 4.5 * 0.004), 1);
}

TEST(Callees, TakeAPartOfWhatIsWithinAVisit) {
  const LoopStep within{0.004, 0.001, 10, true};
  const LoopStep between{0.200, 0.196, 0, false};  // another phase of the program
  EXPECT_NEAR(part_in_callees(std::vector{within, between, within}), 0.25, 1e-12);
  EXPECT_NEAR(part_in_callees(std::vector{between}), 0.98, 1e-12) << "nothing else is known";
  EXPECT_EQ(part_in_callees({}), 0);
}

TEST(Speed, NeedsFourSteps) {
  std::vector<LoopStep> steps(3, LoopStep{0.004, 0, 1e6, true, false, 1});
  EXPECT_FALSE(speed_of(steps, 1));
  steps.push_back(steps.front());
  EXPECT_TRUE(speed_of(steps, 1));
  steps.back().same = false;
  EXPECT_FALSE(speed_of(steps, 1));
}

}  // namespace
}  // namespace crosstalk::attribution::loop_rates_test
