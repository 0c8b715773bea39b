// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>

namespace crosstalk::service::processes_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A child that waits, or executes a program. It does not outlive the test.
class Child {
 public:
  explicit Child(std::vector<const char*> command = {}) {
    command.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (command.front() != nullptr) {
        ::execv(command.front(), const_cast<char* const*>(command.data()));
      }
      ::pause();
      ::_exit(0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Leaves a zombie.
  void end() const {
    ::kill(pid_, SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }

 private:
  pid_t pid_ = -1;
};

/// Waits until the child executes its program, whose arguments begin so.
Process executed(pid_t pid, const std::string& command) {
  for (int i = 0; i < 5000; ++i) {
    if (const auto process = process_of(pid); process && process->command.starts_with(command)) {
      return *process;
    }
    ::usleep(2000);
  }
  ADD_FAILURE() << "it does not execute " << command;
  return {};
}

TEST(CgroupIn, TakesTheUnifiedHierarchy) {
  EXPECT_EQ(cgroup_in("0::/system.slice/a.service\n"), "/system.slice/a.service");
  EXPECT_EQ(cgroup_in("0::/system.slice/a.service"), "/system.slice/a.service");
  EXPECT_EQ(cgroup_in("0::/a:b/c\n"), "/a:b/c");
  EXPECT_EQ(cgroup_in("0::/\n"), "/");
}

TEST(CgroupIn, TakesSystemdsWhereThereIsNoUnified) {
  const std::string old = "12:cpu,cpuacct:/x\n3:name=systemd:/system.slice/a.service\n1:memory:/y\n";
  EXPECT_EQ(cgroup_in(old), "/system.slice/a.service");
  EXPECT_EQ(cgroup_in(old + "0::/\n"), "/system.slice/a.service");
  EXPECT_EQ(cgroup_in(old + "0::/system.slice/b.service\n"), "/system.slice/b.service");
}

TEST(CgroupIn, SurvivesAnything) {
  for (const char* const text : {"", "\n", ":", "::", "0", "0:", "no colons\n\n", "0:x\n"}) {
    EXPECT_EQ(cgroup_in(text), "") << text;
  }
  EXPECT_EQ(cgroup_in("::\n"), "");
}

Process process(std::string executable, std::string command, std::string cgroup) {
  return {1, 0, 0, std::move(executable), std::move(command), std::move(cgroup)};
}

TEST(BelongsTo, ByUnit) {
  const Match match{MatchBy::unit, "a.service"};
  EXPECT_TRUE(belongs_to(process("", "", "/system.slice/a.service"), match));
  EXPECT_TRUE(belongs_to(process("", "", "/user.slice/user-5.slice/a.service/sub/group"), match));
  for (const char* const cgroup : {"", "/", "/a.service2", "/xa.service", "/system.slice/a.servic", "/a.service.d/x"}) {
    EXPECT_FALSE(belongs_to(process("a.service", "a.service", cgroup), match)) << cgroup;
  }
}

TEST(BelongsTo, ByControlGroup) {
  for (const char* const pattern : {"/a/b", "/a/b/", "/a/b//"}) {
    const Match match{MatchBy::cgroup, pattern};
    EXPECT_TRUE(belongs_to(process("", "", "/a/b"), match));
    EXPECT_TRUE(belongs_to(process("", "", "/a/b/c/d"), match));
    EXPECT_FALSE(belongs_to(process("", "", "/a/bc"), match));
    EXPECT_FALSE(belongs_to(process("", "", "/a"), match));
    EXPECT_FALSE(belongs_to(process("", "", ""), match));
    EXPECT_FALSE(belongs_to(process("", "", "/x/a/b"), match));
  }
  EXPECT_TRUE(belongs_to(process("", "", "/anything"), {MatchBy::cgroup, "/"}));
}

TEST(BelongsTo, ByPatternsOfPathAndArguments) {
  EXPECT_TRUE(belongs_to(process("/opt/shop/bin/x", "", ""), {MatchBy::executable, "/opt/shop/*"}));
  EXPECT_FALSE(belongs_to(process("/opt/shop/bin/x", "", ""), {MatchBy::executable, "/opt/shop"}));
  EXPECT_FALSE(belongs_to(process("", "/opt/shop/x", ""), {MatchBy::executable, "/opt/*"}));
  EXPECT_TRUE(belongs_to(process("", "java -Xmx1g -jar a.jar", ""), {MatchBy::command, "java *-jar a.jar"}));
  EXPECT_TRUE(belongs_to(process("", "a?[", ""), {MatchBy::command, "a\\?\\["}));
  EXPECT_FALSE(belongs_to(process("a", "", ""), {MatchBy::command, "a"}));
}

TEST(BelongsTo, TakesNotLongWhateverTheArguments) {
  std::string command;
  while (command.size() < 4096) {
    command += "java ";
  }
  EXPECT_FALSE(belongs_to(process("", command, ""), {MatchBy::command, "*j*a*v*a*j*a*v*a*x*"}));
}

/// Processes by pid, each with its parent; those with a name are of the service.
std::vector<Process> tree(const std::vector<std::array<pid_t, 2>>& pids, const std::vector<pid_t>& members) {
  std::vector<Process> all;
  for (const auto& [pid, parent] : pids) {
    const bool is_member = std::find(members.begin(), members.end(), pid) != members.end();
    all.push_back({pid, parent, 0, "/bin/x", is_member ? "member" : "other", ""});
  }
  return all;
}

TEST(ProcessesOf, LeavesOutChildrenOfMembers) {
  const Match match{MatchBy::command, "member"};
  const auto all = tree({{1, 0}, {10, 1}, {11, 10}, {12, 11}, {13, 1}, {20, 12}}, {10, 11, 13, 20});
  EXPECT_THAT(processes_of(all, match, false), ElementsAre(10, 11, 13, 20));
  EXPECT_THAT(processes_of(all, match, true), ElementsAre(10, 13));  // 20 by way of 12, which is none
  EXPECT_THAT(processes_of({}, match, true), IsEmpty());
  EXPECT_THAT(processes_of(tree({{5, 1}}, {}), match, true), IsEmpty());
}

TEST(ProcessesOf, EndsInACycleOfASnapshot) {
  const Match match{MatchBy::command, "member"};
  EXPECT_THAT(processes_of(tree({{5, 6}, {6, 5}}, {}), match, true), IsEmpty());
  EXPECT_THAT(processes_of(tree({{5, 6}, {6, 7}, {7, 6}}, {5}), match, true), ElementsAre(5));
  EXPECT_THAT(processes_of(tree({{5, 5}}, {5}), match, true), IsEmpty());  // its own descendant
  EXPECT_THAT(processes_of(tree({{5, 99}}, {5}), match, true), ElementsAre(5));
}

TEST(ProcessOf, ThisOne) {
  const auto self = process_of(::getpid());
  ASSERT_TRUE(self);
  EXPECT_EQ(self->pid, ::getpid());
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_EQ(self->owner, ::geteuid());
  EXPECT_THAT(self->executable, ::testing::EndsWith("test_service"));
  EXPECT_THAT(self->command, ::testing::HasSubstr("test_service"));
}

TEST(ProcessOf, WhatIsNoneIsNone) {
  EXPECT_FALSE(process_of(0));
  EXPECT_FALSE(process_of(-1));
  EXPECT_FALSE(process_of(2'000'000'000));
  EXPECT_FALSE(process_of(2));  // the kernel's thread daemon, or nothing
  const Child child;
  child.end();
  EXPECT_FALSE(process_of(child.pid()));  // a zombie
}

TEST(ProcessOf, AThreadIsNone) {
  pid_t thread = 0;
  std::thread([&] {
    thread = ::gettid();
    EXPECT_FALSE(process_of(thread));
  }).join();
  EXPECT_NE(thread, ::getpid());
}

TEST(ProcessOf, TakesTheBeginningOfManyArguments) {
  const std::string much(100'000, 'x');
  const Child child({"/bin/sh", "-c", "kill -STOP $$", "a b", much.c_str()});
  const Process process = executed(child.pid(), "/bin/sh");
  EXPECT_EQ(process.command.size(), 4096U);
  EXPECT_THAT(process.command, ::testing::StartsWith("/bin/sh -c kill -STOP $$ a b xxx"));
}

/// The owner of a child that has made itself so; 12345 if that failed.
uid_t owner_as(bool (*become)()) {
  std::array<int, 2> ready{};
  EXPECT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char done = become() ? 'y' : 'n';
    (void)!::write(ready[1], &done, 1);
    ::pause();
    ::_exit(0);
  }
  char done = 'n';
  (void)!::read(ready[0], &done, 1);
  const auto process = process_of(child);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  return done == 'y' && process ? process->owner : 12345;
}

constexpr uid_t alice = 1234;

TEST(ProcessOf, OneThatIsNotDumpableIsRoots) {
  EXPECT_EQ(owner_as([] { return ::prctl(PR_SET_DUMPABLE, 0) == 0; }), 0U);
  EXPECT_EQ(owner_as([] { return true; }), ::geteuid());
}

TEST(ProcessOf, OneWithOtherRightsIsRoots) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can change users";
  }
  EXPECT_EQ(owner_as([] { return ::setresuid(alice, alice, alice) == 0; }), 0U);  // not dumpable
  EXPECT_EQ(owner_as([] { return ::setresuid(alice, alice, alice) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0; }), alice);
  EXPECT_EQ(owner_as([] { return ::setresuid(alice, alice, 0) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0; }), 0U);
  EXPECT_EQ(owner_as([] { return ::setresuid(0, alice, alice) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0; }), 0U);
  // With the capabilities that it had as root.
  EXPECT_EQ(owner_as([] {
              return ::prctl(PR_SET_KEEPCAPS, 1) == 0 && ::setresuid(alice, alice, alice) == 0 &&
                     ::prctl(PR_SET_DUMPABLE, 1) == 0;
            }),
            0U);
}

TEST(Hold, NamesTheProcessAfterItsEnd) {
  Child child;
  const auto held = hold(child.pid());
  ASSERT_TRUE(held) << held.error().message;
  EXPECT_EQ(held->process.pid, child.pid());
  EXPECT_FALSE(has_ended(held->pidfd));
  child.end();
  EXPECT_TRUE(has_ended(held->pidfd));
  EXPECT_EQ(hold(child.pid()).error().code, ErrorCode::not_found);
  EXPECT_EQ(hold(2'000'000'000).error().code, ErrorCode::not_found);
}

TEST(Ancestors, GoUpToTheFirst) {
  const std::vector<pid_t> ancestors = ancestors_of(::getpid());
  ASSERT_FALSE(ancestors.empty());
  EXPECT_EQ(ancestors.front(), ::getppid());
  EXPECT_THAT(ancestors_of(2'000'000'000), IsEmpty());
}

TEST(ProcessList, SeesProcessesComeExecuteAndGo) {
  constexpr std::uint64_t second = 1'000'000'000;
  ProcessList list;
  std::uint64_t now = 1000 * second;
  const auto find = [&](pid_t pid) -> std::optional<Process> {
    const auto all = list.look(now);
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.pid < b.pid; }));
    const auto found = std::find_if(all.begin(), all.end(), [&](const Process& each) { return each.pid == pid; });
    return found != all.end() ? std::optional(*found) : std::nullopt;
  };
  ASSERT_TRUE(find(::getpid()));
  {
    const Child child({"/bin/sleep", "100"});
    ASSERT_TRUE(find(child.pid()));
    (void)executed(child.pid(), "/bin/sleep");
    now += 2 * second;  // it may just have begun, so the second look comes soon
    ASSERT_TRUE(find(child.pid()));
    EXPECT_EQ(find(child.pid())->command, "/bin/sleep 100");
    child.end();
    now += 100 * second;
    EXPECT_FALSE(find(child.pid()));  // a zombie
  }
  EXPECT_TRUE(find(::getpid()));
}

}  // namespace
}  // namespace crosstalk::service::processes_test
