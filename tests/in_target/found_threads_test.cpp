// SPDX-License-Identifier: Apache-2.0
// Finds threads that were created without our notice: real threads of this test, timers that are only recorded.
#include "collectors/in_target/threads/found_threads.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "collectors/in_target/core/messages.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/sampling/thread_timer.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/threads/found_table.h"
#include "collectors/in_target/threads/step_aside.h"
#include "collectors/in_target/threads/thread_end.h"
#include "collectors/in_target/threads/threads.h"

namespace crosstalk::in_target::found_threads_test {
namespace {

struct World {
  std::map<std::int32_t, std::int32_t> timers;  // running, by id: the thread
  std::int32_t last_timer = 0;
  std::vector<std::int32_t> lost;  // threads that were ended for they had gone
  std::uint32_t clocks_started = 0;
  std::vector<std::string> said;
  std::vector<std::uint64_t> ends_told;  // of threads with these thread pointers
  bool ends_with_next_timer = false;     // the session does, by another thread
  bool has_room = true;                  // for another observed thread
};
World* world = nullptr;

constexpr std::uint64_t second = 1'000'000'000;

/// Registers a robust list, as the kernel sees it of a thread that libc does not know yet, or no longer.
void tell_of_locks(const void* list) { system_call(SYS_set_robust_list, list, std::size_t{24}); }

/// A thread that does nothing until it is let go.
class Idle {
 public:
  explicit Idle(bool blocks_all = false, bool has_locks = true) {
    std::promise<std::int32_t> started;
    thread_ = std::thread([this, blocks_all, has_locks, &started] {
      if (!has_locks) {
        tell_of_locks(nullptr);
      }
      sigset_t all;
      sigfillset(&all);
      if (blocks_all) {
        ::sigprocmask(SIG_SETMASK, &all, nullptr);
        const std::uint64_t raw = ~std::uint64_t{0};  // libc would leave out its own signals
        system_call(SYS_rt_sigprocmask, SIG_SETMASK, &raw, nullptr, sizeof raw);
      }
      started.set_value(::gettid());
      release_.get_future().wait();
    });
    tid_ = started.get_future().get();
  }
  ~Idle() { end(); }
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;
  void end() {
    if (thread_.joinable()) {
      release_.set_value();
      thread_.join();
      while (::tgkill(::getpid(), tid_, 0) == 0) {  // joined before the kernel has forgotten it
        ::usleep(100);
      }
    }
  }
  [[nodiscard]] std::int32_t tid() const { return tid_; }

 private:
  std::promise<void> release_;
  std::thread thread_;
  std::int32_t tid_ = 0;
};

class FoundThreads : public ::testing::Test {
 protected:
  FoundThreads() {
    world = &world_;
    registry().clear();
    found_threads_after_fork();
    runtime().pid = ::getpid();
    runtime().observing.store(true);
    runtime().budget.clear();
    runtime().budget.start(0.03);
    Idle().end();  // a sanitizer makes a thread of its own beside the first
    // Enrols the threads that already exist.
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      enrol(std::stoi(task.path().filename().string()));
    }
  }
  ~FoundThreads() override { world = nullptr; }

  ThreadState& enrol(std::int32_t tid) {
    ThreadState& thread = *registry().add(tid);
    thread.slot = &slots_.at(used_++);
    thread.phase.store(static_cast<std::uint32_t>(ThreadPhase::live));
    return thread;
  }
  /// As many looks as it takes for one to be thorough.
  void look() {
    for (int i = 0; i < 16; ++i) {
      find_threads(now_ns_ += 100 * second);
    }
  }
  [[nodiscard]] std::size_t timers_of(std::int32_t tid) const {
    return static_cast<std::size_t>(
        std::count_if(world_.timers.begin(), world_.timers.end(), [tid](const auto& t) { return t.second == tid; }));
  }

  World world_;
  std::vector<profile::ThreadSlot> slots_ = std::vector<profile::ThreadSlot>(8);
  std::size_t used_ = 0;
  static inline std::uint64_t now_ns_ = 1000 * second;
};

TEST_F(FoundThreads, EachGetsOneTimerInItsLife) {
  Idle stranger;
  look();
  EXPECT_EQ(timers_of(stranger.tid()), 1U);
  look();
  EXPECT_EQ(world_.last_timer, 1) << "a timer for each look would eat the program's limit of pending signals";
  stranger.end();
  look();
  EXPECT_TRUE(world_.timers.empty());
  EXPECT_EQ(find_found(stranger.tid()), nullptr);
}

TEST_F(FoundThreads, LooksAreRare) {
  Idle stranger;
  find_threads(now_ns_ += 100 * second);
  world_.timers.clear();
  forget_found_timers();
  find_threads(now_ns_ + 1'000'000);
  EXPECT_TRUE(world_.timers.empty());
}

TEST_F(FoundThreads, ThoseThatAreObservedAndThoseThatCanNotTickGetNone) {
  Idle known;
  Idle deaf(true);
  enrol(known.tid());
  look();
  EXPECT_TRUE(world_.timers.empty());
}

TEST_F(FoundThreads, OneThatIsJustStartingIsNotTakenForOneMadeWithoutLibc) {
  std::atomic<int> step = 0;
  static const std::uint64_t locks[3] = {};
  std::thread stranger([&step] {
    tell_of_locks(nullptr);
    for (step = 1; step < 2;) {
    }
    tell_of_locks(static_cast<const void*>(locks));
    for (step = 3; step < 4;) {
    }
    tell_of_locks(nullptr);
  });
  const auto wait_for = [&step](int wanted) {
    while (step < wanted) {
      std::this_thread::yield();
    }
  };
  wait_for(1);
  find_threads(now_ns_ += 100 * second);
  EXPECT_TRUE(world_.said.empty());
  EXPECT_TRUE(world_.timers.empty());
  step = 2;
  wait_for(3);
  find_threads(now_ns_ += 100 * second);
  EXPECT_TRUE(world_.said.empty());
  EXPECT_EQ(world_.timers.size(), 1U) << "it is found all the same";
  step = 4;
  stranger.join();
}

TEST_F(FoundThreads, OnesMadeWithoutLibcAreLeftAloneAndTheUserIsTold) {
  Idle raw(false, false);
  find_threads(now_ns_ += 100 * second);
  EXPECT_TRUE(world_.said.empty());
  look();
  EXPECT_EQ(world_.said, std::vector<std::string>{"raw_threads"});
  EXPECT_TRUE(world_.timers.empty());
}

TEST_F(FoundThreads, AnObservedThreadThatIsGoneIsEnded) {
  Idle known;
  Idle other;
  enrol(known.tid());
  enrol(other.tid());
  look();
  EXPECT_TRUE(world_.lost.empty());
  known.end();
  look();
  ASSERT_FALSE(world_.lost.empty());
  EXPECT_EQ(std::count(world_.lost.begin(), world_.lost.end(), other.tid()), 0);
  EXPECT_EQ(world_.lost.front(), known.tid());
}

TEST_F(FoundThreads, ATickMakesItKnownAndEndsItsTimer) {
  Idle stranger;
  look();
  forget_found_thread(stranger.tid());  // as begin_thread() does
  EXPECT_TRUE(world_.timers.empty());
  look();
  EXPECT_EQ(world_.last_timer, 1);
}

TEST_F(FoundThreads, TimersOfThoseThatEndBeforeTheirFirstTickAreGoneBeforeTheNextLook) {
  constexpr std::size_t entries_a_tick = 256;
  constexpr int ticks = static_cast<int>(std::tuple_size_v<FoundTable> / entries_a_tick);
  Idle brief;
  Idle stranger;
  look();
  ASSERT_EQ(world_.timers.size(), 2U);
  brief.end();
  for (int tick = 0; tick < ticks; ++tick) {
    find_threads(now_ns_);  // it is too early for a look
  }
  EXPECT_EQ(timers_of(brief.tid()), 0U);
  EXPECT_EQ(timers_of(stranger.tid()), 1U);
}

TEST_F(FoundThreads, NoTimerIsLeftWhereTheSessionEndsWhileItIsMade) {
  Idle stranger;
  world_.ends_with_next_timer = true;
  look();
  EXPECT_GT(world_.last_timer, 0);
  EXPECT_TRUE(world_.timers.empty());
}

TEST_F(FoundThreads, WhoTicksIsAdoptedAndItsEndIsTold) {
  ThreadPlace place;
  place.thread_pointer = 16;
  adopt_found_thread(place);
  EXPECT_EQ(world_.clocks_started, 1U);
  EXPECT_EQ(world_.ends_told, std::vector<std::uint64_t>{16});
  runtime().observing.store(false);
  adopt_found_thread({});
  EXPECT_EQ(world_.clocks_started, 1U);
}

TEST_F(FoundThreads, WhoTicksAndFindsNoRoomIsLeftAlone) {
  std::atomic<bool> started = false;  // before that libc blocks all signals
  std::atomic<bool> adopt = false;
  world_.has_room = false;
  std::thread stranger([&started, &adopt] {
    started = true;
    while (!adopt) {
      std::this_thread::yield();
    }
    adopt_found_thread({});
  });
  while (!started) {
    std::this_thread::yield();
  }
  look();
  EXPECT_EQ(world_.timers.size(), 1U);
  adopt = true;
  stranger.join();
  EXPECT_TRUE(world_.timers.empty());
  EXPECT_EQ(world_.clocks_started, 0U);
}

}  // namespace
}  // namespace crosstalk::in_target::found_threads_test

// Stands in for the functions that the unit calls in a target.
namespace crosstalk::in_target {

long start_thread_timer(std::int32_t tid, std::uint64_t /*first_ns*/, std::uint64_t /*period_ns*/) {
  found_threads_test::world->timers[++found_threads_test::world->last_timer] = tid;
  if (found_threads_test::world->ends_with_next_timer) {
    runtime().observing.store(false);
    forget_found_threads();
  }
  return found_threads_test::world->last_timer;
}
void delete_thread_timer(std::int32_t id) { found_threads_test::world->timers.erase(id); }
void emit_message(const char* code, const char* /*text*/) { found_threads_test::world->said.emplace_back(code); }
void step_aside(const char* code, const char* /*text*/, StepAside /*how*/) { ADD_FAILURE() << code; }
void tell_end_of_calling_thread(std::uint64_t thread_pointer) {
  found_threads_test::world->ends_told.push_back(thread_pointer);
}
void start_clock(ThreadState& /*self*/) { ++found_threads_test::world->clocks_started; }
ThreadState* begin_thread(std::uint64_t /*low*/, std::uint64_t /*high*/, std::uint64_t /*thread_pointer*/,
                          std::uint64_t /*start_routine*/) {
  return found_threads_test::world->has_room ? registry().find(kernel_thread_id()) : nullptr;
}
void end_lost_thread(ThreadState& /*thread*/, std::int32_t tid) { found_threads_test::world->lost.push_back(tid); }

}  // namespace crosstalk::in_target
