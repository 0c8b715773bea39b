// SPDX-License-Identifier: Apache-2.0
// For every scenario: the rows of a run fit together, and watchpoints are taken for dead only if they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "attribution/stages/watch_sight.h"
#include "tests/simulation/run.h"

namespace crosstalk::simulation::every_scenario_test {
namespace {

TEST(EveryScenario, RowsFitTogether) {
  for (const Scenario& scenario : scenarios()) {
    SCOPED_TRACE(std::string(scenario.name));
    const SimulatedRun run = simulate(scenario, 1);
    const bool comes_and_goes = scenario.life_ns > 0;
    EXPECT_EQ(run.threads.size() % scenario.threads, 0U);
    EXPECT_EQ(run.threads.size() > scenario.threads, comes_and_goes);
    double sampled_s = 0;
    std::size_t armed = 0;
    for (const profile::SampleRow& sample : run.samples) {
      sampled_s += static_cast<double>(sample.cpu_ns) / 1e9;
      armed += (sample.flags & profile::sample_armed) != 0 ? 1 : 0;
    }
    // A thread that lives for a part of a period is sampled by chance: one in four of 7,000 is, to 2 %. Samples that
    // count stand for no time.
    EXPECT_NEAR(sampled_s, scenario.observer.source == Source::clock ? run.cpu_s : 0,
                (comes_and_goes ? 0.1 : 0.01) * run.cpu_s);
    EXPECT_EQ(armed, run.watches.size());
    EXPECT_GT(armed, 20U);
    for (std::size_t i = 0; i < run.watches.size(); ++i) {
      EXPECT_EQ(run.watches[i].id.value, i + 1);
      EXPECT_TRUE(run.watches[i].close);
    }
    EXPECT_TRUE(std::is_sorted(run.traps.begin(), run.traps.end(), [](const auto& a, const auto& b) {
      return std::pair(a.watch.value, a.sequence) < std::pair(b.watch.value, b.sequence);
    }));
  }
}

/// Watches that had to trap where watchpoints work.
std::uint64_t telling_watches(const SimulatedRun& run) {
  attribution::UnknownCode code;
  attribution::TellingWatches telling(run.watches, run.threads, code);
  for (const profile::SampleRow& sample : run.samples) {
    telling.add(sample);
  }
  return telling.count();
}

TEST(EveryScenario, DeadWatchpointsAreFoundOutByTheWatchesThatShouldHaveTrapped) {
  for (const char* const name : {"ping_pong", "false_sharing", "all_to_all", "own_words"}) {
    Scenario dead = scenario(name);
    dead.observer.dead = true;
    dead.duration_ns = 3e9;
    const SimulatedRun run = simulate(dead, 1);
    EXPECT_TRUE(run.traps.empty()) << name;
    EXPECT_GE(telling_watches(run), attribution::enough_telling_watches) << name;
  }
}

TEST(EveryScenario, LiveWatchpointsAreNeverTakenForDead) {
  for (const Scenario& scenario : scenarios()) {
    const SimulatedRun run = simulate(scenario, 1);
    EXPECT_TRUE(!run.traps.empty() || telling_watches(run) == 0) << scenario.name;
  }
}

}  // namespace
}  // namespace crosstalk::simulation::every_scenario_test
