// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/session/forks.h"

#include <gtest/gtest.h>

#include "collectors/in_target/contract/core.h"
#include "tests/in_target/attach_fixture.h"

namespace crosstalk::in_target::test::forks_test {
namespace {

class Forks : public AttachFixture {};

TEST_F(Forks, AForkedChildIsObservedAnew) {
  ThreadState& self = observe();
  self.watch_event[0].fd = 1;
  kernel_.events.push_back({0, true, {0x1000, 8, WatchMode::read_write}});
  runtime().budget.earn(1'000'000);
  runtime().budget.spend(1'000'000);
  const int found = in_child([this] {
    const Runtime& r = runtime();
    ThreadState* const me = current_thread();
    return first_false({observing(), r.pid == ::getpid(), me != nullptr && me->number == 2, registry().live() == 1,
                        r.budget.spent_fraction() == 0, target_.clocks_started == 1, target_.accesses_forgotten == 1,
                        kernel_.events[0].place.mode == WatchMode::read_write});  // its parent's is not moved
  });
  EXPECT_EQ(found, 0);
  const auto starts = of_type<profile::ProcessStart>(arena_.records(1), profile::RecordType::process_start);
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].parent_pid, ::getpid());
  EXPECT_EQ(starts[0].after_fork, 1U);
  EXPECT_TRUE(observing()) << "the parent goes on";
  EXPECT_EQ(current_thread(), &self);
  self.watch_event[0].fd = 0;
}

TEST_F(Forks, AForkedChildIsLeftAloneWhereChildrenAreNotFollowed) {
  observe();
  runtime().config.follow_children = 0;
  const int found = in_child([this] {
    return first_false({!observing(), current_thread() == nullptr, target_.untracked_blocks == 1,
                        target_.clocks_started == 0, session_config() != nullptr, attached_pid() != ::getpid()});
  });
  EXPECT_EQ(found, 0);
  EXPECT_TRUE(arena_.records(1).empty());
}

TEST_F(Forks, AForkedChildInAnotherPidNamespaceIsLeftAlone) {
  observe();
  target_.in_recorders_pid_namespace = false;
  EXPECT_EQ(in_child([] { return first_false({!observing(), may_make_system_calls()}); }), 0);
  EXPECT_TRUE(arena_.records(1).empty());
}

TEST_F(Forks, AForkedChildOfAProcessThatWeCameIntoLaterHasItsSignalsBack) {
  observe();
  runtime().injected = true;
  EXPECT_EQ(in_child([this] { return first_false({!observing(), target_.disowned_signals == 1}); }), 0);
}

TEST_F(Forks, AChildThatLibcKnowsNothingOfIsNoticedBeforeItMakesThreads) {
  observe();
  const int found = in_child(
      [] {
        const bool as_its_parent = observing() && attached_pid() != ::getpid();
        notice_fork();
        const bool anew = observing() && attached_pid() == ::getpid();
        const ThreadState* const me = current_thread();
        notice_fork();
        return first_false({as_its_parent, anew, me != nullptr && me == current_thread()});
      },
      false);
  EXPECT_EQ(found, 0);
  notice_fork();
  EXPECT_TRUE(of_type<profile::ProcessStart>(arena_.records(0), profile::RecordType::process_start).empty())
      << "the parent is no child";
}

TEST_F(Forks, WhereNothingIsObservedNoChildIs) {
  EXPECT_EQ(in_child([this] { return first_false({!observing(), target_.clocks_started == 0}); }), 0);
}

}  // namespace
}  // namespace crosstalk::in_target::test::forks_test
