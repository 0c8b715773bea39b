// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/line_prober.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "base/proc_fields.h"

namespace crosstalk::observer::line_prober_test {
namespace {

constexpr std::uint32_t gap_ns = 5'000;

TEST(ThreadPlace, ReadsStateAndProcessorBehindAnyName) {
  const std::string behind =
      " 1 2 3 0 -1 4194304 97 0 0 0 12 3 0 0 20 0 3 0 5121 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 17 5 0 0";
  for (const char* const name : {"fs", "a b", ") S 1 2", "(", ""}) {
    const auto place = thread_place("4711 (" + std::string(name) + ") R" + behind);
    ASSERT_TRUE(place) << name;
    EXPECT_EQ(place->state, 'R') << name;
    EXPECT_EQ(place->cpu, 5) << name;
  }
}

TEST(ThreadPlace, RefusesWhatIsMalformed) {
  for (const char* const text : {"", "4711", "4711 (fs)", "4711 (fs) ", "4711 (fs) R 1 2 3", "R"}) {
    EXPECT_FALSE(thread_place(text)) << text;
  }
}

TEST(ThreadRuns, ReadsTimeAndTurns) {
  const auto runs = thread_runs("81273981 5512 97\n");
  ASSERT_TRUE(runs);
  EXPECT_EQ(runs->ran_ns, 81'273'981U);
  EXPECT_EQ(runs->turns, 97U);
  EXPECT_NE(runs, thread_runs("81273981 5512 98"));
  for (const char* const text : {"", "12", "12 13", "12 13 ", "a 1 2", "0 0 0"}) {
    EXPECT_FALSE(thread_runs(text)) << text;
  }
}

struct alignas(64) Line {
  std::atomic<std::uint64_t> word[8];
};

class LookTwice : public testing::Test {
 protected:
  static std::uint64_t address_of(const void* place) { return reinterpret_cast<std::uint64_t>(place); }  // NOLINT
  static bool stay_on(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(cpu), &one);
    return ::sched_setaffinity(0, sizeof one, &one) == 0;
  }
  /// A thread that stores to its word of the line all the time, on one processor.
  std::thread storing(std::size_t word, int cpu, std::atomic<pid_t>& tid) {
    return std::thread([this, word, cpu, &tid] {
      stayed_ = stay_on(cpu) && stayed_;
      tid = ::gettid();
      for (std::uint64_t i = 1; !stop_.load(std::memory_order_relaxed); ++i) {
        line_.word[word].store(i, std::memory_order_relaxed);
      }
    });
  }

  Line line_{};
  std::atomic<bool> stop_{false};
  std::atomic<bool> stayed_{true};
  TargetMemory memory_{::getpid()};
  profile::ProbeCounts skipped_{};
};

TEST_F(LookTwice, SeesWhatOthersStoreAndNeverTheThreadsOwnStores) {
  std::atomic<pid_t> first{0};
  std::atomic<pid_t> second{0};
  std::thread own = storing(0, 0, first);
  std::thread other = storing(4, 1, second);
  while (first == 0 || second == 0) {
    std::this_thread::yield();
  }
  std::uint64_t changed = 0;
  int looked = 0;
  for (int i = 0; i < 20'000 && stayed_ && (changed == 0 || looked < 20); ++i) {  // until both run at once
    const auto looks = look_twice(memory_, first, 0, address_of(&line_), gap_ns, skipped_);
    changed |= looks ? looks->changed : 0;
    looked += looks ? 1 : 0;
  }
  stop_ = true;
  own.join();
  other.join();
  if (!stayed_) {
    GTEST_SKIP() << "this process may not run on processors 0 and 1";
  }
  EXPECT_GT(looked, 0);
  EXPECT_NE(changed >> 32U, 0U) << "the other thread's word";
  EXPECT_EQ(changed & 0xffffffffU, 0U) << "its own word, which it cannot store while it waits";
}

TEST_F(LookTwice, GivesUpOnAThreadThatSleepsOrIsElsewhere) {
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<pid_t> tid{0};
  bool over = false;
  std::thread sleeper([&] {
    std::unique_lock held(mutex);
    tid = ::gettid();
    wake.wait(held, [&] { return over; });
  });
  const auto sleeps = [&] {
    const auto place = thread_place(file_text("/proc/self/task/" + std::to_string(tid) + "/stat"));
    return place && place->state == 'S';
  };
  while (tid == 0 || !sleeps()) {
    std::this_thread::yield();
  }
  for (const int cpu : {0, 1}) {
    EXPECT_FALSE(look_twice(memory_, tid, cpu, address_of(&line_), gap_ns, skipped_));
  }
  EXPECT_FALSE(look_twice(memory_, tid, -1, address_of(&line_), gap_ns, skipped_));
  EXPECT_FALSE(look_twice(memory_, tid, 1'000'000, address_of(&line_), gap_ns, skipped_));
  EXPECT_EQ(skipped_.went_on, 4U);
  {
    const std::lock_guard held(mutex);
    over = true;
  }
  wake.notify_one();
  sleeper.join();
}

TEST_F(LookTwice, TouchesNoPageThatIsNotPresent) {
  void* const pages = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  EXPECT_FALSE(look_twice(memory_, ::gettid(), 0, address_of(pages), gap_ns, skipped_));
  unsigned char present = 1;
  ASSERT_EQ(::mincore(pages, 4096, &present), 0);
  EXPECT_EQ(present & 1U, 0U);
  ::munmap(pages, 4096);
  EXPECT_FALSE(look_twice(memory_, ::gettid(), 0, address_of(pages), gap_ns, skipped_));
  EXPECT_EQ(skipped_.unreadable, 2U);
}

TEST_F(LookTwice, KeepsOffProcessorsThatTheCallerMayNotUse) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2) {
    GTEST_SKIP() << "this process has one processor";
  }
  const int here = ::sched_getcpu();
  int elsewhere = 0;
  while (elsewhere == here || !CPU_ISSET(static_cast<std::size_t>(elsewhere), &before)) {
    ++elsewhere;
  }
  ASSERT_TRUE(stay_on(here));
  line_.word[0] = 1;  // the page is there
  EXPECT_FALSE(look_twice(memory_, ::gettid(), elsewhere, address_of(&line_), gap_ns, skipped_));
  EXPECT_EQ(skipped_.went_on, 1U);
  EXPECT_EQ(::sched_getcpu(), here);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

TEST_F(LookTwice, TheCallerMayRunWhereItMightBefore) {
  cpu_set_t before;
  cpu_set_t after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  (void)look_twice(memory_, ::gettid(), ::sched_getcpu(), address_of(&line_), gap_ns, skipped_);
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace crosstalk::observer::line_prober_test
