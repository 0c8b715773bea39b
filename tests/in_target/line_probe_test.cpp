// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/probe/line_probe.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "collectors/in_target/core/runtime.h"

namespace crosstalk::in_target::line_probe_test {
namespace {

constexpr std::uint32_t gap_ns = 20'000;

class LineProbeTest : public testing::Test {
 protected:
  void SetUp() override { runtime().pid = getpid(); }
  void TearDown() override { runtime().pid = 0; }

  struct alignas(64) Line {
    std::atomic<std::uint64_t> word[8];
  };
  static std::uint64_t address_of(const void* place) { return reinterpret_cast<std::uint64_t>(place); }  // NOLINT

  Line line_{};
  profile::ProbeCounts skipped_{};
};

TEST_F(LineProbeTest, SeesWhichBytesAnotherThreadStoresTo) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (std::uint8_t i = 1; !stop.load(); ++i) {
      line_.word[3].store(i);
    }
  });
  std::uint64_t changed = 0;
  for (int i = 0; i < 100'000 && changed == 0; ++i) {  // until both have had a processor at once
    const HandlerStay stay;
    const auto looks = look_twice(address_of(&line_), gap_ns, skipped_);
    changed = looks ? looks->changed : 0;
  }
  stop = true;
  other.join();
  EXPECT_EQ(changed, std::uint64_t{1} << 24U);
}

TEST_F(LineProbeTest, WhatNobodyStoresToStays) {
  line_.word[1] = 77;
  const HandlerStay stay;
  const auto looks = look_twice(address_of(&line_), 300, skipped_);
  ASSERT_TRUE(looks);
  EXPECT_EQ(looks->changed, 0U);
  EXPECT_EQ(looks->first[1], 77U);
  EXPECT_GE(looks->gap_ns, 300U);
}

TEST_F(LineProbeTest, WhileOthersAreInHandlersNothingIsSaid) {
  const HandlerStay stay;
  {
    const HandlerStay another;
    EXPECT_FALSE(look_twice(address_of(&line_), 300, skipped_));
  }
  EXPECT_EQ(skipped_.in_handlers, 1U);
  EXPECT_TRUE(look_twice(address_of(&line_), 300, skipped_));
}

TEST_F(LineProbeTest, AForkedChildHasNoOthersInHandlers) {
  const HandlerStay of_another_thread;
  const pid_t child = ::fork();
  if (child == 0) {
    runtime().pid = getpid();
    forget_handler_stays();
    const HandlerStay stay;
    ::_exit(look_twice(address_of(&line_), 300, skipped_) ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// An address space that one thread changes all the time: pages are mapped anew, dropped, made inaccessible, and
/// a mapped file is truncated and grown.
class RestlessMemory {
 public:
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t bytes = 64 * page;

  RestlessMemory() {
    EXPECT_NE(file_, -1);
    EXPECT_EQ(::ftruncate(file_, bytes), 0);
    place_ = ::mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(place_, MAP_FAILED);
    map_anew();
    thread_ = std::thread([this] { change_until_stopped(); });
  }
  ~RestlessMemory() {
    stop_ = true;
    thread_.join();
    ::munmap(place_, 2 * bytes);
    ::close(file_);
  }
  RestlessMemory(const RestlessMemory&) = delete;
  RestlessMemory& operator=(const RestlessMemory&) = delete;

  [[nodiscard]] std::uint64_t begin() const { return reinterpret_cast<std::uint64_t>(place_); }  // NOLINT

 private:
  void* at(std::size_t offset) { return static_cast<std::byte*>(place_) + offset; }
  void map_anew() {
    constexpr int access = PROT_READ | PROT_WRITE;
    ::mmap(place_, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0);
    ::mmap(at(bytes), bytes, access, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file_, 0);
  }
  void change_until_stopped() {
    std::mt19937_64 random(2);
    while (!stop_) {
      void* const some = at(random() % 128 * page);
      switch (random() % 7) {
        case 0:
          ::mprotect(some, page, PROT_NONE);
          break;
        case 1:
          ::mmap(some, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);  // a hole others might take
          break;
        case 2:
          ::madvise(some, page, MADV_DONTNEED);
          break;
        case 3:
          (void)!::ftruncate(file_, static_cast<off_t>(random() % 64 * page));
          (void)!::ftruncate(file_, bytes);
          break;
        case 4:
          ::mprotect(place_, 2 * bytes, PROT_READ);
          break;
        default:
          map_anew();
      }
    }
  }

  std::atomic<bool> stop_{false};
  int file_ = ::memfd_create("restless", MFD_CLOEXEC);
  void* place_ = nullptr;
  std::thread thread_;
};

TEST_F(LineProbeTest, OfLinesThatComeAndGoEachProbeSeesOneOrIsCounted) {
  const RestlessMemory memory;
  std::mt19937_64 random(1);
  constexpr std::uint64_t probes = 20'000;
  std::uint64_t seen = 0;
  for (std::uint64_t i = 0; i < probes; ++i) {
    const HandlerStay stay;
    const std::uint64_t anywhere = i % 2 == 0 ? memory.begin() + random() % (2 * RestlessMemory::bytes) : random();
    const auto looks = look_twice(anywhere & ~std::uint64_t{63}, 300, skipped_);
    seen += looks ? 1 : 0;
  }
  EXPECT_EQ(seen + skipped_.unreadable, probes);
  EXPECT_GT(skipped_.unreadable, probes / 4) << "few random addresses are mapped";
  EXPECT_EQ(skipped_.in_handlers + skipped_.beside_another, 0U);
}

TEST_F(LineProbeTest, APageThatIsNotThereIsNotAskedFor) {
  constexpr std::size_t page = 4096;
  void* const place = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  const auto resident = [&] {
    unsigned char answer = 0;
    EXPECT_EQ(::mincore(place, page, &answer), 0);
    return (answer & 1U) != 0;
  };
  const HandlerStay stay;
  EXPECT_FALSE(look_twice(address_of(place), 300, skipped_));
  EXPECT_EQ(skipped_.unreadable, 1U);
  EXPECT_FALSE(resident()) << "whoever serves its faults would have been asked for it";
  *static_cast<std::uint64_t*>(place) = 5;
  EXPECT_TRUE(look_twice(address_of(place), 300, skipped_));
  ::munmap(place, page);
}

}  // namespace
}  // namespace crosstalk::in_target::line_probe_test
