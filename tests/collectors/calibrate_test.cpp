// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <ctime>
#include <thread>
#include <vector>

#include "collectors/facilities/probe.h"

namespace crosstalk::collectors::calibrate_test {
namespace {

double now_s() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

TEST(Calibrate, FillsWhatTheProbeFound) {
  Probe found = probe();
  profile::SessionConfig config;
  calibrate(found, config);
  EXPECT_EQ(config.perf_allowed, found.perf_allowed ? 1U : 0U);
  EXPECT_EQ(config.watchpoints_allowed, found.watchpoints_inside ? 1U : 0U);
  EXPECT_EQ(config.timer_allowed, 1U);
  EXPECT_LE(config.watchpoints, found.debug_registers);
}

TEST(Calibrate, KeepsASmallerWishForWatchpoints) {
  profile::SessionConfig config;
  config.watchpoints = 1;
  Probe found = probe();
  calibrate(found, config);
  EXPECT_LE(config.watchpoints, 1U);
}

TEST(Calibrate, MeasuresCostsOfAPlausibleSize) {
  profile::SessionConfig config;
  Probe found = probe();
  calibrate(found, config);
  EXPECT_GT(config.signal_cost_ns, 50U);
  EXPECT_LT(config.signal_cost_ns, 1'000'000U);
  EXPECT_GT(config.trap_cost_ns, 50U);
  EXPECT_LT(config.trap_cost_ns, 1'000'000U);
  EXPECT_LT(config.switch_cost_ns, 1'000'000U);
  EXPECT_GT(config.perf_sample_cost_ns, 50U);
}

/// Other processes' threads, enough to keep each processor busy four times over.
class BusyMachine {
 public:
  BusyMachine() {
    const unsigned threads = 4 * std::max(std::thread::hardware_concurrency(), 1U);
    for (unsigned i = 0; i < threads; ++i) {
      threads_.emplace_back([this] {
        while (!over_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~BusyMachine() {
    over_ = true;
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  BusyMachine(const BusyMachine&) = delete;
  BusyMachine& operator=(const BusyMachine&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_;
};

// A sample takes 2 to 40 us, on bare metal or not; another program's time slice is a hundred times that.
TEST(Calibrate, TimeOfOthersIsNotTakenForTheCostOfASample) {
  const BusyMachine busy;
  std::vector<std::uint32_t> costs;
  for (int i = 0; i < 5; ++i) {
    profile::SessionConfig config;
    config.perf_sample_cost_ns = 0;
    Probe found = probe();
    calibrate(found, config);
    costs.push_back(config.perf_sample_cost_ns);  // 0: it took too long, and the default would stay
  }
  std::sort(costs.begin(), costs.end());
  EXPECT_LT(costs[costs.size() / 2], 80'000U);
}

TEST(Calibrate, WithoutRightsItKeepsTheDefaults) {
  const profile::SessionConfig defaults;
  profile::SessionConfig config;
  Probe none;
  calibrate(none, config);
  EXPECT_EQ(config.trap_cost_ns, defaults.trap_cost_ns);
  EXPECT_EQ(config.switch_cost_ns, defaults.switch_cost_ns);
  EXPECT_EQ(config.watchpoints, 0U);
  EXPECT_EQ(config.timer_allowed, 0U);
}

TEST(Calibrate, IsQuickAndLeavesTheCallerAsItWas) {
  cpu_set_t before;
  cpu_set_t after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  profile::SessionConfig config;
  const double begin = now_s();
  Probe found = probe();
  calibrate(found, config);
  EXPECT_LT(now_s() - begin, 1.0);  // some 20 ms on a quiet machine
  ASSERT_EQ(::sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  struct sigaction action {};
  ASSERT_EQ(::sigaction(SIGTRAP, nullptr, &action), 0);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
}

}  // namespace
}  // namespace crosstalk::collectors::calibrate_test
