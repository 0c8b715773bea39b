// SPDX-License-Identifier: Apache-2.0
// Attaches to an arena and detaches from it, in this process, in its forked children and in copies of this program that
// are started with an arena in their environment. Fakes record the calls to their surroundings (fake_kernel.h,
// fake_target.h).
#include "collectors/in_target/session/attach.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/threads/threads.h"
#include "profile/records.h"
#include "tests/in_target/arena.h"
#include "tests/in_target/fake_kernel.h"
#include "tests/in_target/fake_target.h"

namespace crosstalk::in_target::attach_test {
namespace {

using test::Arena;
using test::Records;
using Steps = std::vector<std::string>;

template <class Record>
std::vector<Record> of(const Records& all, profile::RecordType type) {
  return test::of_type<Record>(all, type);
}

std::string tail_of(const std::vector<std::byte>& record, std::size_t fixed_bytes) {
  profile::RecordHeader header;
  std::memcpy(&header, record.data(), sizeof header);
  return {reinterpret_cast<const char*>(record.data() + fixed_bytes), header.tail};
}

/// Runs checks in a forked child: 0 if all hold, else the number of the first that fails.
int in_child(const std::function<int()>& look, bool by_libc = true) {
  const pid_t child = by_libc ? ::fork() : static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) {
    ::_exit(look());
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// The number of the first of these that is false; 0: none.
int first_false(std::initializer_list<bool> facts) {
  int number = 0;
  for (const bool fact : facts) {
    ++number;
    if (!fact) {
      return number;
    }
  }
  return 0;
}

class Attach : public testing::Test {
 protected:
  Attach() {
    static const bool watched = [] {
      watch_forks();  // for the process's life
      return true;
    }();
    EXPECT_TRUE(watched);
    runtime().rings.stop();
  }
  ~Attach() override {
    Runtime& r = runtime();
    r.observing.store(false);
    r.quiesced.store(false);
    r.injected = false;
    r.confined_pid.store(0);
    r.rings.stop();
    if (mapped_) {
      leave_own_memory(r.arena.header);
      ::munmap(r.arena.header, arena_.header().rings_offset);
    }
  }
  Attach(const Attach&) = delete;
  Attach& operator=(const Attach&) = delete;

  bool map() {
    mapped_ = map_arena(arena_.name().c_str());
    return mapped_;
  }
  /// The calling thread is observed.
  ThreadState& observe() {
    EXPECT_TRUE(map());
    runtime().pid = ::getpid();
    ThreadState* const self = begin_thread(0x1000, 0x9000, 0x7777);
    EXPECT_NE(self, nullptr);
    runtime().observing.store(true);
    return *self;
  }

  test::FakeKernel kernel_;
  test::FakeTarget target_;
  Arena arena_;
  bool mapped_ = false;
};

// ---- the arena

TEST_F(Attach, TheArenasSettingsAreTakenOver) {
  arena_.header().config.period_ns = 12345;
  arena_.header().memory.events = 1;
  const std::size_t own_before = own_memory_bytes();
  ASSERT_TRUE(map());
  const Runtime& r = runtime();
  EXPECT_EQ(r.config.period_ns, 12345U);
  EXPECT_EQ(r.memory.events, 1U);
  EXPECT_EQ(r.slot_count, 8U);
  EXPECT_NE(r.arena.header, &arena_.header()) << "a mapping of its own";
  EXPECT_EQ(r.arena.header->recorder_pid, ::getpid());
  EXPECT_EQ(own_memory_bytes(), own_before + arena_.header().rings_offset);
  EXPECT_TRUE(is_own_memory(reinterpret_cast<std::uint64_t>(r.arena.header))) << "nothing in it is watched";
}

TEST_F(Attach, SettingsThatCanNotBeAreNotBelieved) {
  arena_.header().memory.events = profile::most_memory_events + 1;
  ASSERT_TRUE(map());
  EXPECT_EQ(runtime().memory.events, 0U);
}

TEST_F(Attach, NoDescriptorIsKept) {
  const auto open_now = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = open_now();
  ASSERT_TRUE(map());
  EXPECT_EQ(open_now(), before);
}

TEST_F(Attach, WhatIsNoArenaOfARunningSessionIsLeftAlone) {
  EXPECT_FALSE(map_arena("/proc/self/fd/4711"));
  EXPECT_FALSE(map_arena("/dev/null"));
  arena_.header().state.store(static_cast<std::uint32_t>(profile::SessionState::stopping));
  EXPECT_FALSE(map());
  arena_.header().state.store(static_cast<std::uint32_t>(profile::SessionState::running));
  ++arena_.header().version;
  EXPECT_FALSE(map());
  --arena_.header().version;
  arena_.cut(arena_.header().total_bytes - page_bytes);
  EXPECT_FALSE(map()) << "rings would lie behind its end";
  EXPECT_EQ(arena_.header().processes_without_room.load(), 0U);
}

TEST_F(Attach, AnArenaWithMoreRingsThanAreProvidedForIsLeftAlone) {
  const Arena large(RingMemory::most_chunks * RingMemory::rings_a_chunk + 1, page_bytes);
  const std::size_t before = own_memory_bytes();
  EXPECT_FALSE(map_arena(large.name().c_str()));
  EXPECT_EQ(own_memory_bytes(), before);
}

TEST_F(Attach, AProgramUnderALimitThatHasNoRoomIsLeftAloneAndCounted) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_DATA, &before), 0);
  const std::string name = arena_.name();
  const rlimit little{16 * page_bytes, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &little), 0);
  const bool attached = map_arena(name.c_str());
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &before), 0);
  EXPECT_FALSE(attached);
  EXPECT_EQ(arena_.header().processes_without_room.load(), 1U);
}

// ---- the process

TEST_F(Attach, AProcessBeginsWithItsProgramAndItsCommandLine) {
  observe();
  runtime().config.watchpoints_allowed = 1;
  runtime().config.watchpoints = 3;
  static_cast<void>(arena_.records(0));
  write_process_start(true);
  const Records all = arena_.records(0);
  const auto starts = of<profile::ProcessStart>(all, profile::RecordType::process_start);
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].pid, ::getpid());
  EXPECT_EQ(starts[0].parent_pid, ::getppid());
  EXPECT_EQ(starts[0].after_fork, 1U);
  EXPECT_EQ(starts[0].registers_free, 3U);
  EXPECT_EQ(starts[0].observation, profile::Observation::preloaded);
  const std::string tail = tail_of(all[0], sizeof(profile::ProcessStart));
  EXPECT_EQ(tail.substr(0, tail.find('\0')), std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_NE(tail.find("test_in_target", tail.find('\0') + 1), std::string::npos) << "how it was called";
}

TEST_F(Attach, WhereNoWatchpointCanBeHadNoneIsPromised) {
  observe();
  runtime().injected = true;
  static_cast<void>(arena_.records(0));
  write_process_start(false);
  const auto starts = of<profile::ProcessStart>(arena_.records(0), profile::RecordType::process_start);
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].registers_free, 0U);
  EXPECT_EQ(starts[0].observation, profile::Observation::injected);
}

/// Empty: it can be observed.
std::string reason() {
  const char* const why = why_not_observed(::getppid());
  return why != nullptr ? why : "";
}

TEST_F(Attach, APlainProgramIsObserved) {
  EXPECT_EQ(in_child([] { return reason().empty() ? 0 : 1; }), 0);
}

TEST_F(Attach, ATracedProgramIsNotObserved) {
  EXPECT_EQ(in_child([] {
              ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
              return reason().find("traces") != std::string::npos ? 0 : 1;
            }),
            0);
}

TEST_F(Attach, AProgramInAFilterOfItsOwnIsNotObserved) {
  const int found = in_child([] {
    sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const sock_fprog program{1, &allow};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      return 77;
    }
    return reason().find("seccomp") != std::string::npos ? 0 : 1;
  });
  if (found == 77) {
    GTEST_SKIP() << "this machine lets nobody set a seccomp filter";
  }
  EXPECT_EQ(found, 0);
}

TEST_F(Attach, AProgramThatAsksTheKernelByItselfIsNotObserved) {
  target_.direct_calls.confines = true;
  EXPECT_NE(reason().find("enters a seccomp filter"), std::string::npos);
  target_.direct_calls = {};
  target_.direct_calls.signals = true;
  EXPECT_NE(reason().find("Go program"), std::string::npos);
}

// ---- forks

TEST_F(Attach, AForkedChildIsObservedAnew) {
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
  const auto starts = of<profile::ProcessStart>(arena_.records(1), profile::RecordType::process_start);
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].parent_pid, ::getpid());
  EXPECT_EQ(starts[0].after_fork, 1U);
  EXPECT_TRUE(observing()) << "the parent goes on";
  EXPECT_EQ(current_thread(), &self);
  self.watch_event[0].fd = 0;
}

TEST_F(Attach, AForkedChildIsLeftAloneWhereChildrenAreNotFollowed) {
  observe();
  runtime().config.follow_children = 0;
  const int found = in_child([this] {
    return first_false({!observing(), current_thread() == nullptr, target_.untracked_blocks == 1,
                        target_.clocks_started == 0, session_config() != nullptr, attached_pid() != ::getpid()});
  });
  EXPECT_EQ(found, 0);
  EXPECT_TRUE(arena_.records(1).empty());
}

TEST_F(Attach, AForkedChildInAnotherPidNamespaceIsLeftAlone) {
  observe();
  target_.in_recorders_pid_namespace = false;
  EXPECT_EQ(in_child([] { return first_false({!observing(), may_make_system_calls()}); }), 0);
  EXPECT_TRUE(arena_.records(1).empty());
}

TEST_F(Attach, AForkedChildOfAProcessThatWeCameIntoLaterHasItsSignalsBack) {
  observe();
  runtime().injected = true;
  EXPECT_EQ(in_child([this] { return first_false({!observing(), target_.disowned_signals == 1}); }), 0);
}

TEST_F(Attach, AChildThatLibcKnowsNothingOfIsNoticedBeforeItMakesThreads) {
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
  EXPECT_TRUE(of<profile::ProcessStart>(arena_.records(0), profile::RecordType::process_start).empty())
      << "the parent is no child";
}

TEST_F(Attach, WhereNothingIsObservedNoChildIs) {
  EXPECT_EQ(in_child([this] { return first_false({!observing(), target_.clocks_started == 0}); }), 0);
}

// ---- exec

TEST_F(Attach, BeforeAnExecAllIsQuietAndAfterOneThatFailedItGoesOn) {
  observe();
  static_cast<void>(arena_.records(0));
  before_exec();
  EXPECT_TRUE(runtime().quiesced.load());
  EXPECT_EQ(target_.clocks_stopped, 1U);
  const auto ends = of<profile::ProcessEnd>(arena_.records(0), profile::RecordType::process_end);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].pid, ::getpid());
  EXPECT_EQ(ends[0].exec, 1U);
  exec_failed();
  EXPECT_FALSE(runtime().quiesced.load());
  EXPECT_EQ(target_.clocks_started, 1U);
  EXPECT_TRUE(arena_.records(0).empty()) << "to the recorder it is the same process";
}

TEST_F(Attach, AfterAnExecThatFailedNothingStartsWhereWeSteppedAsideMeanwhile) {
  observe();
  before_exec();
  runtime().observing.store(false);
  exec_failed();
  EXPECT_EQ(target_.clocks_started, 0U);
}

// ---- what the program does for itself

TEST_F(Attach, WeStepAsideFromWhatOurCallsWouldHarm) {
  observe();
  on_traced();
  on_user_dispatch();
  on_seccomp();
  EXPECT_EQ(target_.aside, (Steps{"traced", "user_dispatch", "seccomp"}));
  EXPECT_TRUE(confined());
  EXPECT_FALSE(may_make_system_calls());
}

TEST_F(Attach, WhatAVforkChildDoesIsNotItsParents) {
  observe();
  runtime().pid = ::getpid() + 1;  // as such a child finds it
  on_traced();
  on_user_dispatch();
  on_breakpoint_wanted();
  on_own_descriptors(true);
  on_signal_taken(SIGTRAP);
  on_limit_raised();
  EXPECT_FALSE(on_signal_limit());
  EXPECT_TRUE(target_.aside.empty());
  EXPECT_EQ(target_.perf_clocks_forgone, 0U);
  on_seccomp();
  EXPECT_TRUE(target_.aside.empty());
  EXPECT_TRUE(confined()) << "what it executes is confined with it";
}

TEST_F(Attach, WhatTheProgramNeedsItselfIsForgone) {
  observe();
  on_breakpoint_wanted();
  on_own_descriptors();  // there is no other thread
  on_own_descriptors(true);
  EXPECT_TRUE(on_signal_limit());
  on_unmap(target_.vdso_at - 4096, 4096);
  on_unmap(target_.vdso_at, 1);
  on_signal_taken(clock_signal);
  on_signal_taken(SIGTRAP);
  EXPECT_EQ(target_.aside, (Steps{"breakpoints_wanted", "own_descriptors", "signal_limit", "vdso", "clock_signal_used",
                                  "sigtrap_used"}));
  target_.timers_are_ours = false;
  EXPECT_FALSE(on_signal_limit()) << "a second try would fail, too";
}

TEST_F(Attach, DescriptorsAreRenewedWhereTheProgramsLimitIsRaised) {
  observe();
  ThreadState& ended = *registry().add(kernel_thread_id() + 1);
  ended.phase.store(static_cast<std::uint32_t>(ThreadPhase::ending));
  on_limit_raised();
  EXPECT_EQ(target_.perf_clocks_forgone, 1U) << "of the thread that lives";
  EXPECT_EQ(target_.accesses_closed, 1U);
}

TEST_F(Attach, AThreadThatBlocksTheTrapIsNotWatched) {
  ThreadState& self = observe();
  on_trap_blocked();
  EXPECT_TRUE(self.blocks_traps);
  EXPECT_TRUE(self.watch_tried);
}

// ---- from the program's start to its exit

/// Starts this program once more, without a test to run, and with the arena in its environment. Returns its exit
/// status.
int start_again(const Arena& arena, bool traced) {
  // The leak check traces, which a traced program cannot do.
  std::vector<std::string> environment = {std::string(profile::arena_variable) + "=" + arena.name(),
                                          "ASAN_OPTIONS=detect_leaks=0"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view name(*variable);
    if (!name.starts_with("ASAN_OPTIONS=") && !name.starts_with("GTEST_")) {  // its results are not this program's
      environment.emplace_back(*variable);
    }
  }
  std::vector<char*> pointers;
  for (std::string& variable : environment) {
    pointers.push_back(variable.data());
  }
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (traced) {
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    }
    ::execle("/proc/self/exe", "again", "--gtest_filter=None", nullptr, pointers.data());
    ::_exit(99);
  }
  int status = -1;
  while (::waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    ::ptrace(PTRACE_CONT, child, nullptr, nullptr);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_F(Attach, AProgramIsObservedFromItsStartToItsExit) {
  ASSERT_EQ(start_again(arena_, false), 0);
  const Records all = arena_.records(0);
  ASSERT_EQ(all.size(), 4U);
  const auto begun = of<profile::ThreadStart>(all, profile::RecordType::thread_start);
  const auto starts = of<profile::ProcessStart>(all, profile::RecordType::process_start);
  const auto ends = of<profile::ProcessEnd>(all, profile::RecordType::process_end);
  ASSERT_EQ(begun.size() + starts.size() + ends.size(), 3U);
  EXPECT_GT(begun[0].stack_high, begun[0].stack_low) << "the first thread's stack";
  EXPECT_EQ(begun[0].tid, starts[0].pid);
  EXPECT_EQ(starts[0].parent_pid, ::getpid());
  EXPECT_EQ(starts[0].after_fork, 0U);
  EXPECT_EQ(ends[0].exec, 0U);
  EXPECT_EQ(of<profile::ThreadEnd>(all, profile::RecordType::thread_end).size(), 1U);
  EXPECT_EQ(arena_.slot(0).state.load(), static_cast<std::uint32_t>(profile::SlotState::ended));
  EXPECT_TRUE(arena_.records(1).empty());
}

TEST_F(Attach, AProgramThatIsNotObservedSaysWhy) {
  ASSERT_EQ(start_again(arena_, true), 0);
  const Records all = arena_.records(0);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(of<profile::ProcessStart>(all, profile::RecordType::process_start).size(), 1U);
  const auto said = of<profile::Message>(all, profile::RecordType::message);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_STREQ(said[0].code, "not_observed");
  EXPECT_EQ(of<profile::ThreadEnd>(all, profile::RecordType::thread_end).size(), 1U);
}

TEST_F(Attach, AProgramThatFindsNoSessionRunsAsItWould) {
  arena_.header().state.store(static_cast<std::uint32_t>(profile::SessionState::stopping));
  EXPECT_EQ(start_again(arena_, false), 0);
  EXPECT_TRUE(arena_.records(0).empty());
}

}  // namespace
}  // namespace crosstalk::in_target::attach_test
