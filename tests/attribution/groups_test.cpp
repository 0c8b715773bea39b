// SPDX-License-Identifier: Apache-2.0
#include "attribution/groups.h"

#include <gtest/gtest.h>

namespace crosstalk::attribution::groups_test {
namespace {

Amount seen(double cost_s) {
  Amount amount;
  amount.cost_s = cost_s;
  amount.cost_ci95 = Interval{cost_s / 2, cost_s * 2};
  amount.gain_ci95 = Interval{0, cost_s};
  amount.count = 100 * cost_s;
  amount.seen = 10;
  return amount;
}

/// Thread 0 is "main", 1 to 3 are "worker-1" to "worker-3"; they run on processors of their own.
Analysis four_threads() {
  Analysis a;
  a.session.topology = "0 0 0 0 0 0;1 0 0 0 0 0;2 1 0 2 0 0;3 0 1 3 3 1";
  a.processes.resize(2);
  a.processes[0].pid = 10;
  a.processes[0].command = "/usr/bin/server --fast";
  a.processes[1].pid = 20;
  a.processes[1].command = "client";
  for (std::uint32_t i = 0; i < 4; ++i) {
    ThreadSummary thread;
    thread.index = i;
    thread.pid = i < 2 ? 10 : 20;
    thread.name = i == 0 ? "main" : "worker-" + std::to_string(i);
    thread.start_routine = i == 0 ? "" : "worker(int)";
    thread.cpu_s = 1 + i;
    thread.samples = 100;
    thread.kernel_share = i == 1 ? 0.6 : 0.0;
    thread.communication_s = 0.5;
    a.threads.push_back(thread);
    a.processors.push_back({i, 2.0, 50, 0.1});
  }
  a.communication.cells = {{0, 1, seen(0.1), {}}, {1, 2, seen(0.2), seen(0.3)}, {2, 3, seen(0.4), {}}};
  a.communication.cores = {{0, 1, seen(0.1), {}}, {1, 2, seen(0.2), {}}, {2, 3, seen(0.4), {}}};
  return a;
}

Grouping grouped(const Analysis& analysis, GroupBy by) {
  auto grouping = group(analysis, by);
  EXPECT_TRUE(grouping) << (grouping ? "" : grouping.error().message);
  return grouping ? std::move(*grouping) : Grouping{};
}

TEST(Groups, NamesThatDifferInATrailingNumberAreOneGroup) {
  const Grouping g = grouped(four_threads(), GroupBy::name);
  ASSERT_EQ(g.groups.size(), 2U);
  EXPECT_EQ(g.groups[0].name, "main");
  EXPECT_EQ(g.groups[1].name, "worker-*");
  EXPECT_EQ(g.groups[1].members, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_DOUBLE_EQ(*g.groups[1].cpu_s, 9);
  EXPECT_EQ(g.groups[1].samples, 300U);
  EXPECT_DOUBLE_EQ(g.groups[1].kernel_share.value_or(-1), 0.2);
  EXPECT_DOUBLE_EQ(*g.groups[1].communication_s, 1.5);
}

TEST(Groups, WhatMembersExchangeIsTheDiagonal) {
  const Grouping g = grouped(four_threads(), GroupBy::name);
  ASSERT_EQ(g.cells.size(), 2U);
  EXPECT_EQ(g.cells[0].producer, 0U);
  EXPECT_EQ(g.cells[0].consumer, 1U);
  EXPECT_EQ(g.cells[1].producer, 1U);
  EXPECT_EQ(g.cells[1].consumer, 1U);
  EXPECT_DOUBLE_EQ(*g.cells[1].true_sharing.cost_s, 0.6);
  EXPECT_DOUBLE_EQ(g.cells[1].true_sharing.cost_ci95->high, 1.2);
  EXPECT_DOUBLE_EQ(*g.cells[1].true_sharing.count, 60);
  EXPECT_DOUBLE_EQ(*g.cells[1].false_sharing.cost_s, 0.3);
  EXPECT_EQ(g.cells[1].false_sharing.seen, 10U);
}

TEST(Groups, ANameAloneStays) {
  EXPECT_EQ(common_name("worker-12"), "worker-*");
  EXPECT_EQ(common_name("io"), "io");
  EXPECT_EQ(common_name("7"), "7");
  EXPECT_EQ(common_name(""), "");
  Analysis a = four_threads();
  a.threads.resize(2);
  a.communication = {};
  EXPECT_EQ(grouped(a, GroupBy::name).groups[1].name, "worker-1");
}

TEST(Groups, ProcessesAreCalledByTheirCommands) {
  const Grouping g = grouped(four_threads(), GroupBy::process);
  ASSERT_EQ(g.groups.size(), 2U);
  EXPECT_EQ(g.groups[0].name, "10 server");
  EXPECT_EQ(g.groups[1].name, "20 client");
  ASSERT_EQ(g.cells.size(), 3U);  // within 10, from 10 to 20, within 20
}

TEST(Groups, ThreadsWhoseStartRoutineIsNotKnownAreAGroup) {
  const Grouping g = grouped(four_threads(), GroupBy::start_routine);
  ASSERT_EQ(g.groups.size(), 2U);
  EXPECT_EQ(g.groups[0].name, "not known");
  EXPECT_EQ(g.groups[1].name, "worker(int)");
}

TEST(Groups, CoresAreCalledByTheirProcessors) {
  const Grouping g = grouped(four_threads(), GroupBy::core);
  ASSERT_EQ(g.groups.size(), 3U);
  EXPECT_EQ(g.groups[0].name, "cpu 0,1");
  EXPECT_EQ(g.groups[1].name, "cpu 2");
  EXPECT_EQ(g.groups[2].name, "cpu 3");  // core 0 of another package
  EXPECT_TRUE(g.note.empty());
  EXPECT_DOUBLE_EQ(*g.groups[0].cpu_s, 4);
  EXPECT_EQ(g.cells[0].producer, g.cells[0].consumer);
  EXPECT_DOUBLE_EQ(*g.groups[1].communication_s, 0.2);
}

TEST(Groups, Sockets) {
  const Grouping g = grouped(four_threads(), GroupBy::socket);
  ASSERT_EQ(g.groups.size(), 2U);
  EXPECT_EQ(g.groups[1].name, "socket 1");
  ASSERT_EQ(g.cells.size(), 2U);
  EXPECT_DOUBLE_EQ(g.cells[0].cost(), 0.3);  // within socket 0
  EXPECT_DOUBLE_EQ(g.cells[1].cost(), 0.4);
}

TEST(Groups, WithoutATopologyEachProcessorIsACore) {
  Analysis a = four_threads();
  a.session.topology.clear();
  const Grouping g = grouped(a, GroupBy::core);
  EXPECT_EQ(g.groups.size(), 4U);
  EXPECT_FALSE(g.note.empty());
  const auto sockets = group(a, GroupBy::socket);
  ASSERT_FALSE(sockets);
  EXPECT_NE(sockets.error().message.find("--by core"), std::string::npos);
}

TEST(SumOfAmounts, UnknownStaysUnknown) {
  Amount unknown = seen(1);
  unknown.count.reset();
  unknown.count_unknown = "why";
  const Amount sum = sum_amounts(seen(1), unknown);
  EXPECT_FALSE(sum.count);
  EXPECT_EQ(sum.count_unknown, "why");
  EXPECT_FALSE(sum.gain_s);
  EXPECT_DOUBLE_EQ(sum.gain_ci95->high, 2);
}

TEST(SumOfAmounts, WhatWasNotSeenAddsNothing) {
  for (const Amount& sum : {sum_amounts(seen(1), {}), sum_amounts({}, seen(1))}) {
    EXPECT_DOUBLE_EQ(*sum.cost_s, 1);
    EXPECT_DOUBLE_EQ(*sum.count, 100);
    EXPECT_EQ(sum.seen, 10U);
  }
}

}  // namespace
}  // namespace crosstalk::attribution::groups_test
