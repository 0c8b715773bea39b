// SPDX-License-Identifier: Apache-2.0
// Who may record which processes, and what is left of their budget.
#include "daemon/service/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace crosstalk::service::access_test {
namespace {

using ::testing::HasSubstr;

constexpr uid_t root = 0, alice = 1000, bob = 1001, www = 33;

Process process(pid_t pid, uid_t owner, std::string cgroup = "/user.slice") {
  return {pid, 1, owner, "/usr/bin/p", "p", std::move(cgroup)};
}

/// With an open service "web" and a closed one "bank".
Configuration with_services() {
  Configuration configuration;
  configuration.services.push_back({"web", {MatchBy::unit, "web.service"}});
  configuration.services.back().access = true;
  configuration.services.push_back({"bank", {MatchBy::unit, "bank.service"}});
  return configuration;
}

const std::string web = "/system.slice/web.service";
const std::string bank = "/system.slice/bank.service";

void expect_refused(const Peer& peer, const std::vector<Process>& processes, ErrorCode code, const char* why) {
  const auto owner = may_record(peer, processes, with_services());
  ASSERT_FALSE(owner);
  EXPECT_EQ(owner.error().code, code);
  EXPECT_THAT(owner.error().message, HasSubstr(why));
}

TEST(MayRecord, RootAnyWithoutAnOwner) {
  const auto owner = may_record({root, false}, {process(5, alice), process(6, root), process(7, www, bank)}, {});
  ASSERT_TRUE(owner);
  EXPECT_EQ(*owner, std::nullopt);
}

TEST(MayRecord, NobodyNothing) {
  expect_refused({root, false}, {}, ErrorCode::invalid_argument, "no process");
  expect_refused({alice, true}, {}, ErrorCode::invalid_argument, "no process");
}

TEST(MayRecord, AUserTheirOwn) {
  for (const bool in_group : {false, true}) {
    const auto owner = may_record({alice, in_group}, {process(5, alice), process(6, alice, bank)}, with_services());
    ASSERT_TRUE(owner);
    EXPECT_EQ(**owner, alice);
  }
}

TEST(MayRecord, AUserNobodyElses) {
  expect_refused({alice, false}, {process(5, bob)}, ErrorCode::permission, "process 5 belongs to another user");
  expect_refused({alice, true}, {process(5, bob)}, ErrorCode::permission, "process 5");
  // A process that is not dumpable belongs to root in /proc, whoever started it.
  expect_refused({alice, true}, {process(5, root)}, ErrorCode::permission, "process 5");
  expect_refused({alice, false}, {process(5, alice), process(6, bob)}, ErrorCode::permission, "process 6");
}

TEST(MayRecord, AMemberOfTheGroupAnOpenService) {
  const auto owner = may_record({alice, true}, {process(5, www, web), process(6, www, web)}, with_services());
  ASSERT_TRUE(owner);
  EXPECT_EQ(**owner, www);
  expect_refused({alice, true}, {process(5, www, bank)}, ErrorCode::permission, "process 5 belongs to another user");
  expect_refused({alice, false}, {process(5, www, web)}, ErrorCode::permission, "only members of the group crosstalk");
  expect_refused({alice, true}, {process(5, www, "/system.slice/other-web.service")}, ErrorCode::permission,
                 "process 5");
}

TEST(MayRecord, ProcessesOfOneUserAtATime) {
  expect_refused({alice, true}, {process(5, alice), process(6, www, web)}, ErrorCode::refused, "several users");
  expect_refused({alice, true}, {process(5, www, web), process(6, root, web)}, ErrorCode::refused, "several users");
}

TEST(MaySee, RootAllMembersWhatIsOpen) {
  const Configuration configuration = with_services();
  const ServiceSettings& open = configuration.services[0];
  const ServiceSettings& closed = configuration.services[1];
  EXPECT_TRUE(may_see({root, false}, open));
  EXPECT_TRUE(may_see({root, false}, closed));
  EXPECT_TRUE(may_see({alice, true}, open));
  EXPECT_FALSE(may_see({alice, true}, closed));
  EXPECT_FALSE(may_see({alice, false}, open));
}

BudgetShare share(std::vector<pid_t> pids, double budget) { return {std::move(pids), budget, {}, false}; }

TEST(Budget, IsWhatIsAskedForUpToTheLimit) {
  EXPECT_DOUBLE_EQ(*budget_for(share({5}, 0.01), 0.03, {}), 0.01);
  EXPECT_DOUBLE_EQ(*budget_for(share({5}, 0.5), 0.03, {}), 0.03);
}

TEST(Budget, IsWhatOthersLeave) {
  EXPECT_DOUBLE_EQ(*budget_for(share({5}, 0.03), 0.03, {share({5}, 0.01), share({6}, 0.03)}), 0.02);
  EXPECT_DOUBLE_EQ(*budget_for(share({5, 6}, 0.03), 0.03, {share({5}, 0.01), share({6, 7}, 0.02)}), 0.01);
  EXPECT_DOUBLE_EQ(*budget_for(share({5}, 0.03), 0.03, {share({5, 6}, 0.01), share({4, 5}, 0.015)}), 0.005);
}

TEST(Budget, IsRefusedIfLessThanATenthOfAPercentIsLeft) {
  const auto none = budget_for(share({5}, 0.03), 0.03, {share({5}, 0.02), share({5}, 0.01)});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::refused);
  EXPECT_THAT(none.error().message, HasSubstr("(3 % of their CPU time)"));
  EXPECT_FALSE(budget_for(share({5}, 0.03), 0.03, {share({5}, 0.0295)}));
  EXPECT_FALSE(budget_for(share({5, 6}, 0.03), 0.03, {share({6}, 0.03)}));
  // A budget may have been more before the configuration was read again.
  EXPECT_FALSE(budget_for(share({5}, 0.03), 0.01, {share({5}, 0.03)}));
  EXPECT_NEAR(*budget_for(share({5}, 0.03), 0.03, {share({5}, 0.029)}), 0.001, 1e-12);
}

TEST(Budget, CountsThoseWhoseChildrenAreTheSame) {
  const BudgetShare family{{5}, 0.02, {1}, true};
  const BudgetShare alone{{5}, 0.02, {1}, false};
  const BudgetShare grandchild{{7}, 0.03, {6, 5, 1}, false};
  EXPECT_DOUBLE_EQ(*budget_for(grandchild, 0.03, {family}), 0.01);
  EXPECT_DOUBLE_EQ(*budget_for(grandchild, 0.03, {alone}), 0.03);
  const BudgetShare child{{6}, 0.02, {5, 1}, false};
  EXPECT_DOUBLE_EQ(*budget_for({{5}, 0.03, {1}, true}, 0.03, {child}), 0.01);
  EXPECT_DOUBLE_EQ(*budget_for({{5}, 0.03, {1}, false}, 0.03, {child}), 0.03);
}

}  // namespace
}  // namespace crosstalk::service::access_test
