// SPDX-License-Identifier: Apache-2.0
// Timers of the kernel; the test decides if the program has descriptors to spare (fake_kernel.h).
#include "collectors/in_target/sampling/thread_timer.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/task_status.h"
#include "tests/in_target/fake_kernel.h"

namespace crosstalk::in_target::thread_timer_test {
namespace {

constexpr std::uint64_t soon_ns = 5'000'000;  // more than a tick
constexpr std::uint64_t never_ns = 3'600'000'000'000;
constexpr std::uint64_t clock_signal_bit = std::uint64_t{1} << (clock_signal - 1);

/// Holds the calling thread's clock signal pending: libc does not allow blocking it, but the kernel does.
class HeldSignals {
 public:
  HeldSignals() { system_call(SYS_rt_sigprocmask, SIG_BLOCK, &clock_signal_bit, &before_, sizeof before_); }
  ~HeldSignals() {
    while (next()) {
    }
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  static std::optional<siginfo_t> next() {
    siginfo_t info{};
    const timespec at_once{};
    const long got = system_call(SYS_rt_sigtimedwait, &clock_signal_bit, &info, &at_once, sizeof clock_signal_bit);
    return got == clock_signal ? std::optional(info) : std::nullopt;
  }

 private:
  std::uint64_t before_ = 0;
};

void burn(std::uint64_t cpu_ns) {
  const std::uint64_t end = thread_cpu_ns() + cpu_ns;
  while (thread_cpu_ns() < end) {
  }
}

/// Runs until the signal arrives. It is sent at the first tick of the clock after its time, and in a guest the host may
/// delay ticks arbitrarily. nullopt: it did not arrive within much more than that.
std::optional<siginfo_t> burn_until_signal() {
  constexpr std::uint64_t most_ns = 10'000'000'000;
  const std::uint64_t end = thread_cpu_ns() + most_ns;
  std::optional<siginfo_t> signal = HeldSignals::next();
  while (!signal && thread_cpu_ns() < end) {
    burn(soon_ns);
    signal = HeldSignals::next();
  }
  return signal;
}

/// A thread's timer that is deleted even if a test ends early: later the signal has no handler.
class Timer {
 public:
  Timer(std::int32_t thread, std::uint64_t first_ns, std::uint64_t period_ns)
      : id_(start_thread_timer(thread, first_ns, period_ns)) {}
  ~Timer() { end(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  [[nodiscard]] bool started() const { return id_ >= 0; }
  [[nodiscard]] std::int32_t id() const { return static_cast<std::int32_t>(id_); }
  void end() {
    if (started() && !ended_) {
      delete_thread_timer(id());
      ended_ = true;
    }
  }

 private:
  long id_;
  bool ended_ = false;
};

/// A soft limit that is lowered for a while.
class Lowered {
 public:
  Lowered(int what, rlim_t to) : what_(static_cast<__rlimit_resource_t>(what)) {
    getrlimit(what_, &before_);
    const rlimit limit{to, before_.rlim_max};
    EXPECT_LE(to, before_.rlim_max);
    EXPECT_EQ(setrlimit(what_, &limit), 0);
  }
  ~Lowered() { setrlimit(what_, &before_); }
  Lowered(const Lowered&) = delete;
  Lowered& operator=(const Lowered&) = delete;

 private:
  __rlimit_resource_t what_;
  rlimit before_{};
};

/// Returns the RLIMIT_SIGPENDING that leaves `count` signals beside those that the user has queued now.
rlim_t free_beside_queued(rlim_t count) {
  TaskStatus status;
  EXPECT_TRUE(read_task_status(0, status));
  return status.signals_queued + count;
}

/// Returns how many timers that never expire can be started; they are deleted.
std::size_t startable(std::size_t most) {
  std::vector<std::int32_t> ids;
  while (ids.size() < most) {
    const long id = start_thread_timer(kernel_thread_id(), never_ns, never_ns);
    if (id < 0) {
      EXPECT_EQ(id, -EAGAIN);
      break;
    }
    ids.push_back(static_cast<std::int32_t>(id));
  }
  for (const std::int32_t id : ids) {
    delete_thread_timer(id);
  }
  return ids.size();
}

class ThreadTimer : public testing::Test {
 protected:
  void SetUp() override {
    // The signal is available once libc has installed any handler.
    struct sigaction any {};
    any.sa_sigaction = ignore;
    ASSERT_EQ(::sigaction(SIGTRAP, &any, &trap_before_), 0);
    ASSERT_TRUE(take_clock_signal(ignore, SA_SIGINFO));
    forget_thread_timers();  // asks for the allowance anew
  }
  void TearDown() override {
    forget_thread_timers();
    release_clock_signal();
    ::sigaction(SIGTRAP, &trap_before_, nullptr);
  }
  static void ignore(int /*number*/, siginfo_t* /*info*/, void* /*context*/) {}

  test::FakeKernel kernel_;
  struct sigaction trap_before_ {};
};

TEST_F(ThreadTimer, TicksByTheCpuTimeOfItsThread) {
  const HeldSignals held;
  constexpr std::uint64_t later_ns = 20 * soon_ns;
  Timer timer(kernel_thread_id(), later_ns, soon_ns);
  ASSERT_TRUE(timer.started());
  const std::uint64_t begin_ns = thread_cpu_ns();
  EXPECT_FALSE(HeldSignals::next()) << "it has not run so long yet";
  const auto tick = burn_until_signal();
  ASSERT_TRUE(tick);
  EXPECT_GT(thread_cpu_ns() - begin_ns, later_ns - soon_ns) << "not before";
  EXPECT_EQ(tick->si_code, SI_TIMER);
  EXPECT_EQ(tick->si_value.sival_ptr, &runtime()) << "what tells our signals from others'";
  EXPECT_EQ(tick->si_timerid, timer.id());
  int missed = 0;
  for (int n = 0; n < 1000 && missed == 0; ++n) {
    burn(4 * soon_ns);
    const auto next = HeldSignals::next();
    missed = next ? next->si_overrun : 0;
    EXPECT_FALSE(HeldSignals::next()) << "what was not fetched adds to one signal";
  }
  EXPECT_GT(missed, 0) << "the period, too";
  timer.end();
  while (HeldSignals::next()) {
  }
  burn(4 * soon_ns);
  EXPECT_FALSE(HeldSignals::next()) << "it is gone";
}

TEST_F(ThreadTimer, SignalsTheThreadWhoseTimeItIs) {
  const HeldSignals held;
  std::atomic<std::int32_t> other{0};
  std::atomic<bool> go{false};
  bool ticked = false;
  std::thread thread([&] {
    const HeldSignals its;
    other = kernel_thread_id();
    while (!go) {
    }
    ticked = burn_until_signal().has_value();
  });
  while (other == 0) {
  }
  const Timer timer(other, soon_ns, never_ns);
  go = true;
  thread.join();
  ASSERT_TRUE(timer.started());
  EXPECT_TRUE(ticked);
  EXPECT_FALSE(HeldSignals::next());
}

TEST_F(ThreadTimer, IsSetAnew) {
  const HeldSignals held;
  Timer timer(kernel_thread_id(), never_ns, never_ns);
  ASSERT_TRUE(timer.started());
  EXPECT_EQ(set_thread_timer(timer.id(), soon_ns, never_ns), 0);
  EXPECT_TRUE(burn_until_signal());
  timer.end();
  EXPECT_LT(set_thread_timer(timer.id(), soon_ns, never_ns), 0) << "it is gone";
}

TEST_F(ThreadTimer, NoneOfAThreadThatIsGone) {
  std::int32_t gone = 0;
  std::thread([&] { gone = kernel_thread_id(); }).join();
  EXPECT_EQ(start_thread_timer(gone, never_ns, never_ns), -EINVAL);
}

TEST_F(ThreadTimer, TakesAnEighthOfWhatTheProgramMayQueue) {
  const Lowered limit(RLIMIT_SIGPENDING, free_beside_queued(800));
  const std::size_t count = startable(800);
  EXPECT_GT(count, 90U);  // 100, but that the user's other processes begin and end timers meanwhile
  EXPECT_LT(count, 110U);
}

TEST_F(ThreadTimer, TakesLittleWhereItCanNotBeSeenHowMuchIsFree) {
  const Lowered limit(RLIMIT_SIGPENDING, free_beside_queued(6400));
  kernel_.spare_numbers = false;  // no descriptor to read /proc by: what is queued is not known
  const std::size_t count = startable(6400);
  EXPECT_GT(count, 90U);
  EXPECT_LT(count, 200U);  // with those of others for free ones
}

TEST_F(ThreadTimer, GivesBackWhatItDeletes) {
  const Lowered limit(RLIMIT_SIGPENDING, free_beside_queued(80));
  for (int i = 0; i < 100; ++i) {
    const long id = start_thread_timer(kernel_thread_id(), never_ns, never_ns);
    ASSERT_GE(id, 0) << i;
    delete_thread_timer(static_cast<std::int32_t>(id));
  }
}

TEST_F(ThreadTimer, NoneWhereTheProgramNeedsTheRoom) {
  const Lowered limit(RLIMIT_SIGPENDING, free_beside_queued(0));
  EXPECT_EQ(startable(10), 0U);
}

TEST_F(ThreadTimer, NoneWithoutTheSignal) {
  release_clock_signal();
  EXPECT_EQ(startable(1), 0U);
}

TEST_F(ThreadTimer, ForgoneForGood) {
  const auto forgoes = [] {
    const bool first = forgo_thread_timers();
    const bool again = forgo_thread_timers();
    std::exit(first && !again && startable(1) == 0 ? 0 : 1);
  };
  EXPECT_EXIT(forgoes(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace crosstalk::in_target::thread_timer_test
