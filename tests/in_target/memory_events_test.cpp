// SPDX-License-Identifier: Apache-2.0
// The events that a thread samples itself by, with one of every machine: the kernel's page faults, whose samples have
// an address and whose number is known.
#include "collectors/in_target/sampling/memory_events.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/observer/perf_attributes.h"
#include "tests/collectors/perf_events_here.h"

namespace crosstalk::in_target::memory_events_test {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t pages = 10;  // a ring holds the samples of so many, and some of the test's own page faults
constexpr std::size_t ring_pages = 8;

collectors::MemoryEvent page_faults() {
  collectors::MemoryEvent event;
  event.attr.size = sizeof event.attr;
  event.attr.type = PERF_TYPE_SOFTWARE;
  event.attr.config = PERF_COUNT_SW_PAGE_FAULTS;
  event.attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU;
  event.attr.exclude_kernel = 1;
  event.attr.exclude_hv = 1;
  event.attr.disabled = 1;
  event.attr.sample_period = 1;
  event.source = profile::SourceKind::counter;
  event.weight_unit = profile::WeightUnit::occurrences;
  event.period_random = true;
  return event;
}

class MemoryEventsTest : public testing::Test {
 protected:
  MemoryEventsTest() : header_(std::make_unique<profile::ArenaHeader>()) {
    Runtime& r = runtime();
    r.pid = ::getpid();
    r.arena.header = header_.get();
    r.memory = profile::MemorySampling();
    r.memory.events = 1;
    r.memory.ring_bytes = ring_pages * page;
    r.memory.event[0].attr = observer::measuring_attributes(page_faults(), 1);
    r.memory.event[0].attr.sample_stack_user = 256;  // as driver/recording/memory_sampling.cpp has it
    r.memory.event[0].source = profile::SourceKind::counter;
    r.memory.event[0].weight_unit = profile::WeightUnit::occurrences;
    r.memory.event[0].accesses = static_cast<std::uint8_t>(collectors::Accesses::both);
    r.memory.event[0].period_random = 1;
    self_.tid.store(static_cast<std::int32_t>(::gettid()));
    self_.number = 7;
    memory_ = static_cast<volatile std::uint8_t*>(
        ::mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::madvise(const_cast<std::uint8_t*>(memory_), pages * page, MADV_NOHUGEPAGE);
  }
  ~MemoryEventsTest() override {
    MemoryEvents::close(self_);
    ::munmap(const_cast<std::uint8_t*>(memory_), pages * page);
  }
  MemoryEventsTest(const MemoryEventsTest&) = delete;
  MemoryEventsTest& operator=(const MemoryEventsTest&) = delete;

  /// Skips if this user may open no events, or has no descriptors or locked memory left for them. Any other failure is
  /// a fault.
  void SetUp() override {
    if (const std::string why = collectors::why_no_perf_events(); !why.empty()) {
      GTEST_SKIP() << why;
    }
    ASSERT_NO_FATAL_FAILURE(open(true));
    MemoryEvents::close(self_);
  }
  void open(bool may_lack = false) {
    const bool opened = MemoryEvents::open(self_);
    const auto refusal = static_cast<profile::MemoryRefusal>(header_->memory_counts.refusal.load());
    if (!opened && may_lack &&
        (refusal == profile::MemoryRefusal::descriptors || refusal == profile::MemoryRefusal::locked_memory)) {
      GTEST_SKIP() << "no descriptor or no locked memory is left: refusal " << header_->memory_counts.refusal;
    }
    ASSERT_TRUE(opened) << "refusal " << header_->memory_counts.refusal << ", errno "
                        << header_->memory_counts.refusal_error;
  }
  void touch() {
    for (std::size_t i = 0; i < pages; ++i) {
      memory_[i * page + 24] = 1;
    }
  }
  [[nodiscard]] bool is_here(std::uint64_t address) const {
    const auto begin = reinterpret_cast<std::uint64_t>(memory_);
    return address >= begin && address < begin + pages * page;
  }

  std::unique_ptr<profile::ArenaHeader> header_;
  ThreadState& self_ = registry().at(0);
  volatile std::uint8_t* memory_ = nullptr;
};

TEST_F(MemoryEventsTest, EachAccessWithWhatItStandsFor) {
  open();
  touch();
  std::vector<std::uint64_t> addresses;
  std::uint64_t weights = 0;
  const std::uint32_t samples = MemoryEvents::deliver(self_, [&](const PastAccess& access) {
    weights += access.seen.weight;
    if (!is_here(access.seen.address)) {
      return;
    }
    addresses.push_back(access.seen.address);
    EXPECT_EQ(access.seen.width, 1U);
    EXPECT_TRUE(stores(access.seen.kind));
    EXPECT_EQ(access.seen.thread, 7U);
    EXPECT_EQ(access.seen.event, 1U);
    EXPECT_EQ(access.seen.source, profile::SourceKind::counter);
    EXPECT_GT(access.stack.size(), 0U);
  });
  ASSERT_EQ(addresses.size(), pages) << samples << " samples, " << header_->memory_counts.accesses << " of accesses, "
                                     << header_->memory_counts.without_access << " without one, "
                                     << header_->memory_counts.lost << " lost";
  for (std::size_t i = 0; i < pages; ++i) {
    EXPECT_EQ(addresses[i], reinterpret_cast<std::uint64_t>(memory_) + i * page + 24);
  }
  EXPECT_GE(samples, pages);
  EXPECT_GE(weights, pages);
  EXPECT_GE(header_->memory_counts.accesses, pages);
  MemoryEvents::deliver(
      self_, [&](const PastAccess& access) { EXPECT_FALSE(is_here(access.seen.address)) << "each is told once"; });
}

TEST_F(MemoryEventsTest, WhatTheRingHasNoRoomForIsCountedAndStoodFor) {
  open();
  constexpr int rounds = 20;
  for (int round = 0; round < rounds; ++round) {
    touch();
    ::madvise(const_cast<std::uint8_t*>(memory_), pages * page, MADV_DONTNEED);
  }
  std::uint64_t weights = 0;
  const auto add = [&](const PastAccess& access) { weights += access.seen.weight; };
  MemoryEvents::deliver(self_, add);
  touch();  // the kernel tells of what was lost before the next sample
  MemoryEvents::deliver(self_, add);
  EXPECT_GT(header_->memory_counts.lost, 0U);
  EXPECT_GE(weights, rounds * pages) << "the first sample after those that were lost stands for them";
}

TEST_F(MemoryEventsTest, NothingIsLeftOnceClosed) {
  const std::size_t before = own_memory_bytes();
  open();
  EXPECT_EQ(own_memory_bytes(), before + (ring_pages + 1) * page);
  EXPECT_TRUE(MemoryEvents::is_open(self_));
  const int fd = self_.memory.event[0].event.fd;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_GE(static_cast<rlim_t>(fd), std::min<rlim_t>(limit.rlim_cur, 8192)) << "no number of the program's is taken";
  MemoryEvents::close(self_);
  EXPECT_FALSE(MemoryEvents::is_open(self_));
  EXPECT_EQ(own_memory_bytes(), before);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
  EXPECT_EQ(clock_events_open(), 0U);
  open();
  EXPECT_TRUE(MemoryEvents::is_open(self_)) << "again";
}

TEST_F(MemoryEventsTest, WhoeverClosesWhileItIsReadLeavesTheRingToTheReader) {
  open();
  touch();
  const std::byte* ring = self_.memory.ring.memory;
  std::size_t taken = 0;
  MemoryEvents::deliver(self_, [&](const PastAccess&) {
    MemoryEvents::close(self_);
    EXPECT_EQ(self_.memory.ring.memory, ring) << "it is read still";
    ++taken;
  });
  EXPECT_GE(taken, 1U);
  EXPECT_EQ(self_.memory.ring.memory, nullptr);
  EXPECT_EQ(MemoryEvents::deliver(self_, [](const PastAccess&) { FAIL(); }), 0U);
}

TEST_F(MemoryEventsTest, AForkedChildForgetsItsParents) {
  const std::size_t own_before = own_memory_bytes();
  open();
  const pid_t child = ::fork();
  if (child == 0) {
    MemoryEvents::forget(self_);
    const bool clean =
        self_.memory.ring.memory == nullptr && !MemoryEvents::is_open(self_) && own_memory_bytes() == own_before;
    ::_exit(clean ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  // The parent's event counts on. After a fork each written page faults once more: many at once fill the ring, and the
  // kernel throttles an event that fires too often.
  constexpr int tries = 100;
  std::size_t here = 0;
  for (int i = 0; i < tries && here != pages; ++i) {
    MemoryEvents::deliver(self_, [](const PastAccess&) {});
    touch();
    here = 0;
    MemoryEvents::deliver(self_, [&](const PastAccess& access) { here += is_here(access.seen.address) ? 1 : 0; });
    ::madvise(const_cast<std::uint8_t*>(memory_), pages * page, MADV_DONTNEED);
    ::usleep(10'000);
  }
  EXPECT_EQ(here, pages);
}

TEST_F(MemoryEventsTest, AProgramThatMayLockLittleKeepsItForItself) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
  const rlimit little{std::min<rlim_t>(16 * page, before.rlim_max), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &little), 0);
  EXPECT_FALSE(MemoryEvents::open(self_));
  ::setrlimit(RLIMIT_MEMLOCK, &before);
  EXPECT_EQ(header_->memory_counts.refusal, static_cast<std::uint32_t>(profile::MemoryRefusal::locked_memory));
  EXPECT_EQ(header_->memory_counts.clock_alone, 1U);
  note_refusal(self_, profile::MemoryRefusal::switches);
  EXPECT_EQ(header_->memory_counts.clock_alone, 1U) << "a thread is counted once";
  self_.memory.refused = false;
}

TEST_F(MemoryEventsTest, WhatTheKernelRefusesIsToldWithItsReason) {
  runtime().memory.event[0].attr.type = 12345;
  EXPECT_FALSE(MemoryEvents::open(self_));
  EXPECT_EQ(header_->memory_counts.refusal, static_cast<std::uint32_t>(profile::MemoryRefusal::kernel));
  EXPECT_NE(header_->memory_counts.refusal_error, 0);
  EXPECT_EQ(clock_events_open(), 0U);
  self_.memory.refused = false;
}

TEST_F(MemoryEventsTest, ARingThatTheProgramHasWrittenIntoIsGivenUp) {
  open();
  touch();
  auto* const words = reinterpret_cast<perf_event_mmap_page*>(self_.memory.ring.memory);
  ASSERT_EQ(::ioctl(self_.memory.event[0].event.fd, PERF_EVENT_IOC_DISABLE, 0), 0);  // the next sample would mend it
  words->data_head = 0xfedcba9876543210;  // all that can be written: the kernel keeps its records for itself
  EXPECT_EQ(MemoryEvents::deliver(self_, [](const PastAccess&) { FAIL(); }), 0U);
  EXPECT_GT(header_->memory_counts.lost, 0U);
  EXPECT_FALSE(MemoryEvents::is_open(self_));
  EXPECT_EQ(self_.memory.ring.memory, nullptr);
  open();
  ::madvise(const_cast<std::uint8_t*>(memory_), pages * page, MADV_DONTNEED);
  touch();
  std::size_t here = 0;
  MemoryEvents::deliver(self_, [&](const PastAccess& access) { here += is_here(access.seen.address) ? 1 : 0; });
  EXPECT_EQ(here, pages) << "a new one goes on";
}

}  // namespace
}  // namespace crosstalk::in_target::memory_events_test
