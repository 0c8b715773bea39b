// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/threads/inspection.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace crosstalk::in_target::inspection_test {
namespace {

using Events = Inspection::Events;
using Found = Inspection::Found;

constexpr std::uint64_t any_time = UINT64_MAX;

class InspectionTest : public ::testing::Test {
 protected:
  void TearDown() override {
    stop_ = true;
    stop_.notify_all();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  std::thread& add_runner() {
    std::thread& runner = threads_.emplace_back([this] {
      for (runs_ = true; !stop_;) {
      }
    });
    while (!runs_) {  // libc blocks all signals while a thread begins
      std::this_thread::yield();
    }
    return runner;
  }
  void add_sleeper() {
    threads_.emplace_back([this] {
      ++sleepers_;
      stop_.wait(false);
    });
    for (const std::size_t all = threads_.size(); sleepers_ < all;) {
      std::this_thread::yield();
    }
  }
  static std::int64_t cpu_ns(std::thread& thread) {
    clockid_t clock{};
    pthread_getcpuclockid(thread.native_handle(), &clock);
    timespec time{};
    clock_gettime(clock, &time);
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
  }

  Inspection inspection_;

 private:
  std::atomic<bool> stop_{false}, runs_{false};
  std::atomic<std::size_t> sleepers_{0};
  std::vector<std::thread> threads_;
};

// The kernel may hold an unseen signal of a closed event for it.
TEST_F(InspectionTest, ARunnableThreadMustHaveRunSinceEventsWereClosed) {
  std::thread& runner = add_runner();
  EXPECT_EQ(inspection_.go_on(Events::open, any_time), Found::nobody_inside);
  inspection_.begin();
  EXPECT_EQ(inspection_.go_on(Events::closed, any_time), Found::somebody_inside);
  const std::int64_t since = cpu_ns(runner);
  while (cpu_ns(runner) < since + 2'000'000) {
    std::this_thread::yield();
  }
  EXPECT_EQ(inspection_.go_on(Events::closed, any_time), Found::nobody_inside);
  inspection_.begin();
  EXPECT_EQ(inspection_.go_on(Events::closed, any_time), Found::somebody_inside) << "what was seen is forgotten";
}

TEST_F(InspectionTest, ASleepingThreadNeedNotRun) {
  add_sleeper();
  while (inspection_.go_on(Events::closed, any_time) != Found::nobody_inside) {  // until it sleeps, within its first ms
    inspection_.begin();
  }
}

TEST_F(InspectionTest, ManyThreadsAreLookedAtInParts) {
  for (std::size_t i = 0; i < 2 * Inspection::at_once; ++i) {
    add_sleeper();
  }
  EXPECT_EQ(inspection_.go_on(Events::open, 0), Found::not_all_seen);
  EXPECT_EQ(inspection_.go_on(Events::open, 0), Found::not_all_seen);
  EXPECT_EQ(inspection_.go_on(Events::open, 0), Found::nobody_inside);
}

}  // namespace
}  // namespace crosstalk::in_target::inspection_test
