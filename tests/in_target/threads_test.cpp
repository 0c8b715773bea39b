// SPDX-License-Identifier: Apache-2.0
// Threads that begin and end in an arena of the test's own (fake_kernel.h), without clocks.
#include "collectors/in_target/threads/threads.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/system_calls.h"
#include "profile/records.h"
#include "profile/ring_reader.h"
#include "tests/in_target/fake_kernel.h"
#include "tests/in_target/fake_target.h"
#include "tests/in_target/split_records.h"

namespace crosstalk::in_target::threads_test {
namespace {

constexpr std::uint32_t slots = 64;
constexpr std::uint32_t ring_bytes = 16 * page_bytes;

/// Memory as the recorder makes it: a common part, and rings behind it in the file.
std::byte* end_of_shared_part() {
  const int fd = memfd_create("rings", MFD_CLOEXEC);
  EXPECT_EQ(ftruncate(fd, static_cast<off_t>(page_bytes + slots * profile::ring_stride(ring_bytes))), 0);
  void* const at = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  EXPECT_NE(at, MAP_FAILED);
  return static_cast<std::byte*>(at) + page_bytes;
}

std::vector<std::vector<std::byte>> records_of(profile::ThreadSlot& slot, std::uint32_t index) {
  profile::RingReader reader(slot, runtime().rings.ring(index), ring_bytes);
  std::vector<std::byte> batch;
  reader.drain(batch);
  return test::split_records(batch);
}

profile::SlotState state_of(std::uint32_t index) {
  return static_cast<profile::SlotState>(runtime().arena.slot(index)->state.load());
}

class Threads : public testing::Test {
 protected:
  Threads() {
    static std::byte* const shared_end = end_of_shared_part();
    EXPECT_TRUE(runtime().rings.start(shared_end, slots, ring_bytes));
  }
  test::FakeKernel kernel_;
  test::FakeTarget target_;
};

TEST_F(Threads, OneBeginsInTheLowestFreeSlotAndSaysSo) {
  runtime().arena.slot(0)->state = static_cast<std::uint32_t>(profile::SlotState::live);  // of another process
  ThreadState* const self = begin_thread(0x1000, 0x9000, 0x7777);
  ASSERT_NE(self, nullptr);
  EXPECT_EQ(self->number, 2U);
  EXPECT_EQ(target_.waits_begun_of, 2U);
  EXPECT_EQ(target_.regions_begun_of, 2U);
  EXPECT_EQ(current_thread(), self);
  EXPECT_EQ(state_of(1), profile::SlotState::live);
  EXPECT_EQ(runtime().arena.slot(1)->tid.load(), kernel_thread_id());
  const auto starts =
      test::of_type<profile::ThreadStart>(records_of(*self->slot, 1), profile::RecordType::thread_start);
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].tid, kernel_thread_id());
  EXPECT_EQ(starts[0].pid, kernel_process_id());
  EXPECT_EQ(starts[0].stack_low, 0x1000U);
  EXPECT_EQ(starts[0].stack_high, 0x9000U);
  EXPECT_EQ(starts[0].thread_pointer, 0x7777U);
  end_thread(*self);
}

TEST_F(Threads, OneThatWasFoundFirstKeepsItsStateAndTellsItsStack) {
  ThreadState* const found = begin_thread(0, 0, 0);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(begin_thread(0x1000, 0x9000, 0x7777), found);
  EXPECT_EQ(found->stack_high, 0x9000U);
  EXPECT_EQ(registry().live(), 1U);
  const auto starts =
      test::of_type<profile::ThreadStart>(records_of(*found->slot, 0), profile::RecordType::thread_start);
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_EQ(starts[1].stack_high, 0x9000U);
  end_thread(*found);
}

TEST_F(Threads, TheEndHasItsTimesAndTheNameItHadThen) {
  std::vector<profile::ThreadEnd> ends;
  std::thread([&] {
    ThreadState* const self = begin_thread(0, 0, 0);
    ASSERT_NE(self, nullptr);
    profile::ThreadSlot& slot = *self->slot;
    const std::uint64_t until = thread_cpu_ns() + 5'000'000;
    while (thread_cpu_ns() < until) {
    }
    pthread_setname_np(pthread_self(), "late");
    usleep(1000);
    end_thread(*self);
    ends = test::of_type<profile::ThreadEnd>(records_of(slot, 0), profile::RecordType::thread_end);
  }).join();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_STREQ(ends[0].name, "late");
  EXPECT_GT(ends[0].cpu_ns, 5'000'000U);
  EXPECT_GE(ends[0].voluntary_switches, 1U);
  EXPECT_EQ(target_.life_ns, ends[0].cpu_ns);
  EXPECT_EQ(target_.clocks_stopped, 1U);
  EXPECT_EQ(target_.accesses_told, 1U);
  EXPECT_EQ(target_.accesses_closed, 1U);
  EXPECT_EQ(target_.waits_ended, 1U);
  EXPECT_NE(target_.regions_ended_of, 0U);
  EXPECT_EQ(state_of(0), profile::SlotState::ended);
  EXPECT_EQ(registry().live(), 0U);
}

TEST_F(Threads, WhatAThreadUsedBeforeTheLibraryCameIsNotItsTime) {
  std::vector<profile::ThreadEnd> ends;
  runtime().injected = true;
  std::thread([&] {
    constexpr std::uint64_t before_ns = 50'000'000;
    while (thread_cpu_ns() < before_ns) {
    }
    usleep(1000);
    ThreadState* const self = begin_thread(0, 0, 0);
    ASSERT_NE(self, nullptr);
    profile::ThreadSlot& slot = *self->slot;
    end_thread(*self);
    ends = test::of_type<profile::ThreadEnd>(records_of(slot, 0), profile::RecordType::thread_end);
  }).join();
  runtime().injected = false;
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_LT(ends[0].cpu_ns, 40'000'000U);
  EXPECT_EQ(ends[0].voluntary_switches, 0U);
}

TEST_F(Threads, WithoutAFreeSlotItIsCounted) {
  for (std::uint32_t i = 0; i < slots; ++i) {
    runtime().arena.slot(i)->state = static_cast<std::uint32_t>(profile::SlotState::live);
  }
  EXPECT_EQ(begin_thread(0, 0, 0), nullptr);
  EXPECT_EQ(runtime().arena.header->threads_unobserved.load(), 1U);
  EXPECT_EQ(runtime().arena.header->threads_without_memory.load(), 0U);
  EXPECT_EQ(current_thread(), nullptr);
}

TEST_F(Threads, WithoutMemoryForItsRingItIsCountedAndTheSlotIsFree) {
  ASSERT_TRUE(runtime().rings.start(end_of_shared_part(), 0, ring_bytes));
  EXPECT_EQ(begin_thread(0, 0, 0), nullptr);
  EXPECT_EQ(runtime().arena.header->threads_without_memory.load(), 1U);
  EXPECT_EQ(runtime().arena.header->threads_unobserved.load(), 0U);
  EXPECT_EQ(state_of(0), profile::SlotState::free);
  EXPECT_EQ(current_thread(), nullptr);
}

TEST_F(Threads, ChoicesDifferBetweenThreadsAndBetweenParentAndChild) {
  runtime().config.seed = 1;
  const auto random_of_next = [] {
    ThreadState* const self = begin_thread(0, 0, 0);
    const std::uint64_t random = self->random;
    end_thread(*self);
    return random;
  };
  const std::uint64_t first = random_of_next();
  const std::uint64_t second = random_of_next();
  forget_threads_begun();
  const std::uint64_t of_child = random_of_next();
  EXPECT_NE(first, second);
  EXPECT_NE(first, of_child);
  EXPECT_NE(second, of_child);
}

TEST_F(Threads, ALostThreadIsEndedByItsNumberOnly) {
  ThreadState* const self = begin_thread(0, 0, 0);
  ASSERT_NE(self, nullptr);
  profile::ThreadSlot& slot = *self->slot;
  slot.cpu_ns = 1234;
  end_lost_thread(*self, kernel_thread_id() + 1);  // the place has become another thread's
  EXPECT_EQ(current_thread(), self);
  EXPECT_EQ(static_cast<ThreadPhase>(self->phase.load()), ThreadPhase::live);
  end_lost_thread(*self, kernel_thread_id());
  EXPECT_EQ(current_thread(), nullptr);
  const auto ends = test::of_type<profile::ThreadEnd>(records_of(slot, 0), profile::RecordType::thread_end);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].cpu_ns, 1234U) << "as it was seen last";
  end_lost_thread(*self, kernel_thread_id());  // it is gone already
}

}  // namespace
}  // namespace crosstalk::in_target::threads_test
