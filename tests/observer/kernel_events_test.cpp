// SPDX-License-Identifier: Apache-2.0
// The kernel's behaviour with events that are opened on a child of this test.
#include "collectors/observer/kernel_events.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "collectors/facilities/watchpoint_trial.h"
#include "collectors/observer/perf_types.h"
#include "tests/collectors/perf_events_here.h"

namespace crosstalk::observer::kernel_events_test {
namespace {

using Counter = std::atomic<std::uint64_t>;

/// A child that counts, in memory shared with the test.
class CountingChild {
 public:
  CountingChild()
      : counter_(new (::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Counter(0)),
        pid_(::fork()) {
    while (pid_ == 0) {
      counter_->store(counter_->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  }
  CountingChild(const CountingChild&) = delete;
  CountingChild& operator=(const CountingChild&) = delete;
  ~CountingChild() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::munmap(counter_, 4096);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(counter_); }
  /// Waits until it has counted on by so much.
  void await(std::uint64_t more) const {
    for (const std::uint64_t from = *counter_; *counter_ - from < more;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  Counter* counter_;
  pid_t pid_;
};

class KernelEvents : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = collectors::why_no_perf_events(); !why.empty()) {
      GTEST_SKIP() << why;
    }
    Result<OpenEvent> clock = open_clock(child_.pid(), {1'000'000, false});
    ASSERT_TRUE(clock) << clock.error().message;
    clock_ = std::move(*clock);
    Result<PerfRing> ring = map_ring(clock_, usual_ring_pages);
    ASSERT_TRUE(ring) << ring.error().message;
    ring_.emplace(std::move(*ring));
  }

  std::vector<PerfSample> samples(std::uint64_t event) {
    std::vector<PerfSample> found;
    EXPECT_TRUE(ring_->drain(bytes_));
    for (std::span<const std::byte> rest(bytes_); !rest.empty();) {
      const auto parsed = parse_perf_record(rest);
      if (!parsed) {
        ADD_FAILURE() << "a record that cannot be";
        break;
      }
      rest = rest.subspan(parsed->bytes);
      if (const auto* sample = std::get_if<PerfSample>(&parsed->record); sample != nullptr && sample->event == event) {
        found.push_back(*sample);
      }
    }
    return found;
  }

  CountingChild child_;
  OpenEvent clock_;
  std::optional<PerfRing> ring_;
  std::vector<std::byte> bytes_;
};

TEST_F(KernelEvents, ABreakpointReportsSoManyAccessesAndNoMore) {
  const auto breakpoint =
      open_breakpoint(child_.pid(), {child_.address(), 8, watch_policy::WatchMode::read_write}, clock_);
  if (!breakpoint) {
    GTEST_SKIP() << "no debug register is free";
  }
  if (const auto trial = collectors::try_watchpoints().trial; !profile::is_worth_arming(trial)) {
    GTEST_SKIP() << trial.why;
  }
  child_.await(1000);
  EXPECT_TRUE(samples(breakpoint->id).empty());
  constexpr std::uint32_t shots = 5;
  enable_breakpoint(*breakpoint, shots);
  child_.await(100'000);  // nobody reads the ring meanwhile
  const std::vector<PerfSample> seen = samples(breakpoint->id);
  ASSERT_EQ(seen.size(), shots);
  std::uint64_t before_ns = 0;
  for (const PerfSample& sample : seen) {
    EXPECT_EQ(sample.tid, child_.pid());
    EXPECT_EQ(sample.address, child_.address());
    EXPECT_TRUE(sample.has_registers);
    EXPECT_GE(sample.stack.size(), 128U);
    EXPECT_GT(sample.time_ns, before_ns);
    before_ns = sample.time_ns;
  }
}

TEST_F(KernelEvents, AClockSaysHowLongItsThreadRan) {
  enable_event(clock_);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  child_.await(100'000);
  const std::vector<PerfSample> seen = samples(clock_.id);
  ASSERT_FALSE(seen.empty());
  EXPECT_GE(seen.back().count, seen.size() * 900'000);
  EXPECT_EQ(seen.back().tid, child_.pid());
  EXPECT_GE(read_clock(clock_), seen.back().count);
}

TEST_F(KernelEvents, AThreadThatIsGoneIsNotFound) {
  const auto clock = open_clock(INT32_MAX, {1'000'000, false});
  ASSERT_FALSE(clock);
  EXPECT_EQ(clock.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace crosstalk::observer::kernel_events_test
