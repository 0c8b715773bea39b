// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/team.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>

#include "collectors/calibration/machine_description.h"

namespace crosstalk::collectors::calibration::team_test {
namespace {

TEST(Team, EveryMemberWorksOnItsProcessor) {
  const std::vector<std::uint32_t> cpus = usable_processors();
  Team team(cpus);
  std::vector<int> seen(team.size(), -1);
  team.run([&](unsigned member) { seen[member] = ::sched_getcpu(); });
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    EXPECT_EQ(seen[i], static_cast<int>(cpus[i]));
  }
}

TEST(Team, RunsAgainAndAgain) {
  Team team({0, 0, 0});  // three members on one processor must not wait for each other for ever
  std::vector<int> calls(3);
  for (int i = 0; i < 20; ++i) {
    team.run([&](unsigned member) { ++calls[member]; });
  }
  EXPECT_EQ(calls, std::vector<int>(3, 20));
}

TEST(Team, TimesTheWindowOfAll) {
  constexpr double least_s = 0.02;
  Team team({0, 0});
  const TeamTime time =
      team.run([](unsigned member) { std::this_thread::sleep_for(std::chrono::milliseconds(member == 0 ? 20 : 1)); });
  EXPECT_GE(time.longest_s, least_s);
  EXPECT_GE(time.window_s, time.longest_s);
  EXPECT_GE(time.overlap, 0);
  EXPECT_LT(time.overlap, 1);
}

TEST(Team, SaysThatAMemberDidNotHaveItsProcessor) {
  Team team({0});
  EXPECT_TRUE(team.run([](unsigned) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }).disturbed);
}

}  // namespace
}  // namespace crosstalk::collectors::calibration::team_test
