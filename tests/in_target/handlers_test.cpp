// SPDX-License-Identifier: Apache-2.0
// The handlers of the clock's and the debug registers' signals, with real signals in the kernel's form that this
// process sends to itself. Fakes record the effects (fake_kernel.h, fake_target.h).
#include "collectors/in_target/session/handlers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/kernel_signals.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/task_status.h"
#include "tests/in_target/fake_kernel.h"
#include "tests/in_target/fake_target.h"

namespace crosstalk::in_target::handlers_test {
namespace {

using Steps = std::vector<std::string>;

constexpr int trap_perf = 6;  // si_code of a perf event's SIGTRAP
constexpr std::uint32_t raised_while_blocked = 1;
constexpr std::uint64_t trap_bit = std::uint64_t{1} << (SIGTRAP - 1);
constexpr std::uint64_t horizon_ns = 3'600'000'000'000;

alignas(64) constinit std::uint64_t line[8] = {};

/// siginfo_t of a perf event, as asm-generic/siginfo.h lays it out.
siginfo_t perf_signal(std::uint64_t data, std::uint64_t address = 0, std::uint32_t flags = 0) {
  siginfo_t info{};
  info.si_signo = SIGTRAP;
  info.si_code = trap_perf;
  auto* const bytes = reinterpret_cast<std::byte*>(&info);
  std::memcpy(bytes + 16, &address, sizeof address);
  std::memcpy(bytes + 24, &data, sizeof data);
  std::memcpy(bytes + 36, &flags, sizeof flags);
  return info;
}

siginfo_t timer_signal(int timer, void* value = &runtime()) {
  siginfo_t info{};
  info.si_signo = clock_signal;
  info.si_code = SI_TIMER;
  info.si_timerid = timer;
  info.si_value.sival_ptr = value;
  return info;
}

siginfo_t plain_signal(int number, int code) {
  siginfo_t info{};
  info.si_signo = number;
  info.si_code = code;
  info.si_pid = ::getpid();
  return info;
}

/// Sends it to the calling thread, which handles it before this returns.
void send(siginfo_t info) {
  ASSERT_EQ(system_call(SYS_rt_tgsigqueueinfo, kernel_process_id(), kernel_thread_id(), info.si_signo, &info), 0);
}

std::uint64_t blocked_signals() {
  std::uint64_t mask = 0;
  system_call(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, sizeof mask);
  return mask;
}

class Handlers : public testing::Test {
 protected:
  Handlers() {
    ::sigaction(SIGTRAP, nullptr, &trap_before_);
    runtime().observing.store(true);
    auto* const header = runtime().arena.header;
    header->state.store(static_cast<std::uint32_t>(profile::SessionState::running));
    header->heartbeat_ns.store(monotonic_ns());
    header->recorder_pid = ::getpid();
    install_handlers();
  }
  ~Handlers() override {
    runtime().observing.store(false);
    runtime().quiesced.store(false);
    runtime().injected = false;
    watch_unit().forget();
    release_clock_signal();
    ::sigaction(SIGTRAP, &trap_before_, nullptr);
  }
  Handlers(const Handlers&) = delete;
  Handlers& operator=(const Handlers&) = delete;

  /// Thread 1 is sampled at a line that another thread is suspected to share: the process's own unit watches it from
  /// now on. Returns the index of the event that has its word in this thread.
  std::uint32_t watch_line() {
    watch_unit().start(4, horizon_ns);
    ThreadState& other = kernel_.add_thread();
    watch_unit().attend(other);
    watch_unit().attend(self_);
    sample_.time_ns = monotonic_ns();
    sample_.address = reinterpret_cast<std::uint64_t>(&line[2]);
    sample_.width = 8;
    sample_.access = AccessKind::load;
    sample_.from = profile::AddressFrom::retired;
    const WatchRequest request{&other, &sample_, {16, 8, AccessKind::load, false, false}, {}, {}, true};
    EXPECT_TRUE(watch_unit().open(other, request, sample_.time_ns));
    for (std::uint32_t event = 0; event < max_words; ++event) {
      if (kernel_.place(self_, event).address == sample_.address) {
        return event;
      }
    }
    ADD_FAILURE() << "the thread is not armed";
    return 0;
  }

  test::FakeKernel kernel_;
  test::FakeTarget target_;
  ThreadState& self_ = kernel_.add_thread();
  profile::Sample sample_;
  struct sigaction trap_before_ {};
};

// ---- the clock

TEST_F(Handlers, ATickOfAPerfClockIsASampleOfWhatItInterrupted) {
  send(perf_signal(clock_mark));
  ASSERT_EQ(target_.sampled_at.size(), 1U);
  EXPECT_EQ(target_.looks_for_threads, 1U);
  EXPECT_TRUE(target_.handed_over.empty());
}

TEST_F(Handlers, ATickOfATimerIsASampleIfItIsTheThreadsTimer) {
  self_.timer_number = 8;  // id + 1
  send(timer_signal(7));
  EXPECT_EQ(target_.sampled_at.size(), 1U);
  send(timer_signal(6));  // deleted when the signal was on its way
  EXPECT_EQ(target_.sampled_at.size(), 1U);
}

TEST_F(Handlers, NoSampleIsTakenWhereNothingIsObserved) {
  runtime().observing.store(false);
  send(perf_signal(clock_mark));
  runtime().observing.store(true);
  runtime().quiesced.store(true);  // the program is about to execute another
  send(perf_signal(clock_mark));
  runtime().quiesced.store(false);
  self_.phase.store(static_cast<std::uint32_t>(ThreadPhase::ending));
  send(perf_signal(clock_mark));
  EXPECT_TRUE(target_.sampled_at.empty());
  EXPECT_TRUE(target_.adopted.empty());
}

TEST_F(Handlers, AThreadThatTicksAndIsNotKnownIsAdopted) {
  registry().remove(self_);
  send(perf_signal(clock_mark));
  ASSERT_EQ(target_.adopted.size(), 1U);
  EXPECT_EQ(target_.adopted[0].thread_pointer, 0U) << "nothing is known of threads that came without libc";
  runtime().injected = true;
  send(timer_signal(3));
  ASSERT_EQ(target_.adopted.size(), 2U);
  EXPECT_NE(target_.adopted[1].stack_low, 0U) << "of those that were there before, libc's stack is asked for";
  EXPECT_TRUE(target_.sampled_at.empty());
}

TEST_F(Handlers, TheSessionIsOverWhenTheRecorderSaysSo) {
  runtime().arena.header->state.store(static_cast<std::uint32_t>(profile::SessionState::stopping));
  send(perf_signal(clock_mark));
  EXPECT_EQ(target_.aside, Steps{""});
  EXPECT_TRUE(target_.sampled_at.empty());
}

TEST_F(Handlers, TheSessionIsOverWhenTheRecorderIsGoneAndSilent) {
  const pid_t gone = ::fork();
  if (gone == 0) {
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
  auto* const header = runtime().arena.header;
  header->recorder_pid = gone;
  send(perf_signal(clock_mark));
  EXPECT_EQ(target_.sampled_at.size(), 1U) << "it was heard a moment ago";
  header->heartbeat_ns.store(monotonic_ns() - 4'000'000'000);
  header->recorder_pid = ::getpid();
  send(perf_signal(clock_mark));
  EXPECT_EQ(target_.sampled_at.size(), 2U) << "silent, but it lives";
  EXPECT_TRUE(target_.aside.empty());
  header->recorder_pid = gone;
  send(perf_signal(clock_mark));
  EXPECT_EQ(target_.aside, Steps{""});
  EXPECT_EQ(target_.sampled_at.size(), 2U);
}

TEST_F(Handlers, WhereMasksAreLeftAloneAThreadThatBlocksTrapsIsNotWatched) {
  runtime().injected = true;
  self_.timer_number = 1;
  std::uint64_t before = 0;
  system_call(SYS_rt_sigprocmask, SIG_BLOCK, &trap_bit, &before, sizeof before);
  send(timer_signal(0));
  EXPECT_TRUE(self_.blocks_traps);
  EXPECT_TRUE(self_.watch_tried) << "it does not try to be watched";
  system_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  send(timer_signal(0));
  EXPECT_FALSE(self_.blocks_traps);
  EXPECT_FALSE(self_.watch_tried);
  EXPECT_EQ(target_.sampled_at.size(), 2U);
}

// ---- watchpoints

TEST_F(Handlers, AWatchpointThatFiresIsATrapOfItsWatchAndIsCharged) {
  const std::uint32_t event = watch_line();
  send(perf_signal(watch_mark + event, sample_.address));
  const auto traps = test::of_type<profile::WatchTrap>(kernel_.records(self_), profile::RecordType::watch_trap);
  ASSERT_EQ(traps.size(), 1U);
  EXPECT_EQ(traps[0].watch, sample_.watch);
  EXPECT_GE(self_.slot->handlers_ns.load(), runtime().config.trap_cost_ns);
}

TEST_F(Handlers, ATrapThatWasRaisedWhileItWasBlockedOnlyEndsTheWatchpoint) {
  const std::uint32_t event = watch_line();
  send(perf_signal(watch_mark + event, sample_.address, raised_while_blocked));
  EXPECT_TRUE(test::of_type<profile::WatchTrap>(kernel_.records(self_), profile::RecordType::watch_trap).empty());
  EXPECT_EQ(kernel_.place(self_, event).mode, WatchMode::off);
}

TEST_F(Handlers, AWatchpointOfAThreadThatIsNotKnownDoesNothing) {
  const std::uint32_t event = watch_line();
  registry().remove(self_);
  send(perf_signal(watch_mark + event, sample_.address));
  EXPECT_EQ(self_.slot->handlers_ns.load(), 0U);
}

TEST_F(Handlers, AnAlarmIsCharged) {
  send(perf_signal(alarm_mark));
  EXPECT_GE(self_.slot->handlers_ns.load(), runtime().config.perf_sample_cost_ns);
  EXPECT_TRUE(target_.sampled_at.empty());
}

// ---- the program's own signals

TEST_F(Handlers, SignalsThatAreNotOursGoOnToTheProgramsHandler) {
  target_.trap_action.sa_handler = [](int) {};
  if (sigsetjmp(target_.way_out, 1) == 0) {
    send(plain_signal(SIGTRAP, SI_TKILL));
    ADD_FAILURE() << "the handler was not entered";
  }
  if (sigsetjmp(target_.way_out, 1) == 0) {
    asm volatile("int3");  // a fault comes to the handler, too
    ADD_FAILURE() << "the handler was not entered";
  }
  EXPECT_EQ(target_.handed_over, (std::vector<int>{SIGTRAP, SIGTRAP}));
  EXPECT_TRUE(target_.sampled_at.empty());
}

TEST_F(Handlers, TheProgramsHandlerRunsWithTheMaskThatItAskedFor) {
  target_.trap_action.sa_handler = [](int) {};
  sigaddset(&target_.trap_action.sa_mask, SIGUSR2);
  volatile std::uint64_t mask = 0;
  if (sigsetjmp(target_.way_out, 0) == 0) {
    send(plain_signal(SIGTRAP, SI_TKILL));
  } else {
    mask = blocked_signals();
  }
  const std::uint64_t none = 0;
  system_call(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
  EXPECT_EQ(mask, std::uint64_t{1} << (SIGUSR2 - 1) | trap_bit);
}

TEST_F(Handlers, OfTheClocksSignalOnlyOurTicksAreOurs) {
  int other = 0;
  EXPECT_EXIT(send(timer_signal(7, &other)), testing::KilledBySignal(clock_signal), "")
      << "nobody had a handler for it before";
  EXPECT_EXIT(send(plain_signal(clock_signal, SI_TKILL)), testing::KilledBySignal(clock_signal), "");
}

TEST_F(Handlers, AnIgnoredTrapThatSomebodySentIsIgnored) {
  target_.trap_action.sa_handler = SIG_IGN;
  send(plain_signal(SIGTRAP, SI_TKILL));
  EXPECT_TRUE(target_.handed_over.empty());
  EXPECT_TRUE(target_.aside.empty());
}

TEST_F(Handlers, AnIgnoredFaultKillsAsItWouldWithoutUs) {
  target_.trap_action.sa_handler = SIG_IGN;
  EXPECT_EXIT(asm volatile("int3"), testing::KilledBySignal(SIGTRAP), "");
}

TEST_F(Handlers, ATrapThatTheProgramHasNoHandlerForKills) {
  EXPECT_EXIT(send(plain_signal(SIGTRAP, SI_TKILL)), testing::KilledBySignal(SIGTRAP), "");
}

TEST_F(Handlers, ABlockedTrapStaysPendingAndWatchingEnds) {
  target_.blocks_trap = true;
  send(plain_signal(SIGTRAP, SI_TKILL));
  EXPECT_EQ(target_.aside, Steps{"sigtrap_used"});
  TaskStatus status;
  ASSERT_TRUE(read_task_status(kernel_thread_id(), status));
  EXPECT_NE(status.pending & trap_bit, 0U) << "for the thread that it was sent to";
  siginfo_t info{};
  const timespec at_once{};
  EXPECT_EQ(system_call(SYS_rt_sigtimedwait, &trap_bit, &info, &at_once, sizeof trap_bit), SIGTRAP);
  EXPECT_EQ(info.si_code, SI_TKILL) << "as it came";
  system_call(SYS_rt_sigprocmask, SIG_UNBLOCK, &trap_bit, nullptr, sizeof trap_bit);
  EXPECT_TRUE(target_.handed_over.empty());
}

}  // namespace
}  // namespace crosstalk::in_target::handlers_test
