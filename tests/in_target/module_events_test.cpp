// SPDX-License-Identifier: Apache-2.0
// A thread that samples itself by our kernel module for IBS, of which machines for tests have none: a file stands for
// the module's ring.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sampling/memory_events.h"
#include "collectors/in_target/sys/event_ring.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/sys/system_calls.h"
#include "kmod/crosstalk_ibs.h"

namespace crosstalk::in_target::module_events_test {
namespace {

constexpr std::size_t ring_bytes = 8192;
constexpr std::uint64_t records_in_ring = ring_bytes / sizeof(crosstalk_ibs_sample);
constexpr std::uint64_t stored = 2, address_valid = 1U << 17U, eight_bytes = 4U << 22U;
alignas(16) constexpr std::array<std::uint8_t, 16> store_code{0x48, 0x89, 0x07, 0x90};  // mov %rax, (%rdi)

class ModuleEventsTest : public testing::Test {
 protected:
  ModuleEventsTest() : header_(std::make_unique<profile::ArenaHeader>()) {
    Runtime& r = runtime();
    r.pid = ::getpid();
    r.arena.header = header_.get();
    r.config.perf_allowed = 0;
    r.memory = profile::MemorySampling();
    r.memory.events = 1;
    r.memory.ring_bytes = ring_bytes;
    r.memory.event[0].source = profile::SourceKind::ibs_kmod;
    r.memory.event[0].weight_unit = profile::WeightUnit::micro_ops;
    r.memory.event[0].accesses = static_cast<std::uint8_t>(collectors::Accesses::both);
    self_.tid.store(static_cast<std::int32_t>(::gettid()));
    self_.number = 7;
    self_.memory.event[0].leader = self_.memory.event[0].event = {};
  }
  ~ModuleEventsTest() override {
    MemoryEvents::close(self_);
    self_.memory.refused = false;
    runtime().memory = profile::MemorySampling();
  }
  ModuleEventsTest(const ModuleEventsTest&) = delete;
  ModuleEventsTest& operator=(const ModuleEventsTest&) = delete;

  /// The thread has a ring, as after open().
  void SetUp() override {
    file_ = UniqueFd(::memfd_create("ring", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(file_.get(), page_bytes + ring_bytes), 0);
    OwnedEvent file;
    file.fd = file_.get();
    const long mapped = map_event_ring(file, ring_bytes, self_.memory.ring);
    if (mapped == -ENOMEM) {
      GTEST_SKIP() << "no memory can be locked";
    }
    ASSERT_EQ(mapped, 0);
    ThreadMemoryEvents::Event& event = self_.memory.event[0];
    event.event.id = 77;
    event.pace = collectors::EventPace({profile::SourceKind::ibs_kmod, profile::WeightUnit::micro_ops}, 1000);
    self_.memory.count = 1;
    self_.memory.lost = 0;
  }
  [[nodiscard]] crosstalk_ibs_ring& words() const {
    return *reinterpret_cast<crosstalk_ibs_ring*>(self_.memory.ring.memory);
  }
  /// As the module writes a record of a store.
  void sample(std::uint64_t address, std::uint64_t period, const void* code = store_code.data()) {
    crosstalk_ibs_sample record{};
    record.flags = CROSSTALK_IBS_S_USER | CROSSTALK_IBS_S_IP | CROSSTALK_IBS_S_STORE | CROSSTALK_IBS_S_ADDRESS;
    record.time = 100 + words().head;
    record.cpu = 3;
    record.period = period;
    record.ip = reinterpret_cast<std::uint64_t>(code);
    record.address = address;
    record.data[2] = stored | address_valid | eight_bytes;
    auto* const records = reinterpret_cast<crosstalk_ibs_sample*>(self_.memory.ring.memory + page_bytes);
    records[words().head++ % records_in_ring] = record;
  }
  std::vector<collectors::Observation> delivered() {
    std::vector<collectors::Observation> all;
    MemoryEvents::deliver(self_, [&](const PastAccess& access) {
      EXPECT_TRUE(access.stack.empty());
      all.push_back(access.seen);
    });
    return all;
  }

  std::unique_ptr<profile::ArenaHeader> header_;
  ThreadState& self_ = registry().at(0);
  UniqueFd file_;
};

TEST_F(ModuleEventsTest, EachAccessWithItsOwnInterval) {
  words().head = words().tail = records_in_ring - 1;  // the next ones wrap
  sample(0x10008, 1500);
  sample(0x10010, 2500);
  const auto seen = delivered();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].address, 0x10008U);
  EXPECT_EQ(seen[1].address, 0x10010U);
  EXPECT_EQ(seen[0].weight, 1500U);
  EXPECT_EQ(seen[1].weight, 2500U);
  EXPECT_EQ(seen[0].kind, AccessKind::store);
  EXPECT_EQ(seen[0].width, 8U);
  EXPECT_EQ(seen[0].thread, 7U);
  EXPECT_EQ(seen[0].event, 1U);
  EXPECT_EQ(seen[0].cpu, 3U);
  EXPECT_EQ(seen[0].source, profile::SourceKind::ibs_kmod);
  EXPECT_EQ(seen[0].from, profile::AddressFrom::hardware);
  EXPECT_EQ(seen[0].access_ip, reinterpret_cast<std::uint64_t>(store_code.data()));
  EXPECT_EQ(header_->memory_counts.accesses, 2U);
  EXPECT_EQ(words().tail, words().head) << "the module may overwrite them";
  EXPECT_TRUE(delivered().empty()) << "each is told once";
}

TEST_F(ModuleEventsTest, HandlersOfOurOwnAreLeftOut) {
  void* const ours = map_own_memory(page_bytes);
  ASSERT_NE(ours, nullptr);
  sample(0x10008, 1500, ours);
  EXPECT_TRUE(delivered().empty());
  EXPECT_EQ(words().tail, 1U);
}

TEST_F(ModuleEventsTest, WhatTheRingHadNoRoomForIsCountedOnce) {
  words().lost = 3;
  EXPECT_TRUE(delivered().empty());
  words().lost = 4;
  EXPECT_TRUE(delivered().empty());
  EXPECT_EQ(header_->memory_counts.lost, 4U);
}

TEST_F(ModuleEventsTest, ARingThatTheProgramHasWrittenIntoIsGivenUp) {
  words().head = records_in_ring + 1;
  EXPECT_TRUE(delivered().empty());
  EXPECT_EQ(header_->memory_counts.lost, 1U);
  EXPECT_FALSE(MemoryEvents::is_open(self_));
  EXPECT_EQ(self_.memory.ring.memory, nullptr);
}

TEST_F(ModuleEventsTest, WithoutTheDeviceTheReasonIsTold) {
  if (::access("/dev/crosstalk_ibs", F_OK) == 0) {
    GTEST_SKIP() << "the module is loaded";
  }
  MemoryEvents::close(self_);
  EXPECT_TRUE(MemoryEvents::allowed()) << "perf is not asked";
  if (!has_hidden_numbers()) {
    GTEST_SKIP() << "no descriptor is left";
  }
  EXPECT_FALSE(MemoryEvents::open(self_));
  EXPECT_EQ(header_->memory_counts.refusal, static_cast<std::uint32_t>(profile::MemoryRefusal::kernel));
  EXPECT_EQ(header_->memory_counts.refusal_error, ENOENT);
  EXPECT_EQ(clock_events_open(), 0U);
}

TEST(DescriptorsOfDevices, AreLeftAloneOnceTheProgramHasTheirNumbers) {
  OwnedEvent device;
  const long opened = open_like_clock(
      [](const void*) { return system_call(SYS_openat, AT_FDCWD, "/dev/zero", O_RDONLY | O_CLOEXEC); }, device);
  if (opened < 0) {
    GTEST_SKIP() << "no hidden number: error " << -opened;
  }
  EXPECT_EQ(clock_events_open(), 1U);
  EXPECT_EQ(control(device, FIOCLEX, nullptr), 0) << "it is ours";
  const int fd = device.fd;
  const UniqueFd other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit high{std::max<rlim_t>(before.rlim_cur, static_cast<rlim_t>(fd) + 1), before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &high);
  const int taken = ::dup2(other.get(), fd);
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_EQ(taken, fd);
  EXPECT_EQ(control(device, FIOCLEX, nullptr), -EBADF) << "another device";
  close_clock_event(device);
  EXPECT_EQ(clock_events_open(), 0U);
  EXPECT_EQ(::close(fd), 0) << "it was still the program's";
}

}  // namespace
}  // namespace crosstalk::in_target::module_events_test
