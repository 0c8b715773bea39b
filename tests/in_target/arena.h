// SPDX-License-Identifier: Apache-2.0
// An arena as the recorder makes it, for tests of attaching.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/system_calls.h"
#include "profile/ring.h"
#include "profile/ring_reader.h"
#include "profile/wait_table.h"
#include "tests/in_target/split_records.h"

namespace crosstalk::in_target::test {

using Records = std::vector<std::vector<std::byte>>;

/// An arena as the recorder makes it, mapped here whole.
class Arena {
 public:
  explicit Arena(std::uint32_t slots = 8, std::uint32_t ring_bytes = 16 * page_bytes) : ring_bytes_(ring_bytes) {
    const auto rounded = [](std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; };
    const std::uint64_t exchange = rounded(sizeof(profile::ArenaHeader), 64);
    const std::uint64_t slots_at = exchange + profile::cross_process_bytes;
    const std::uint64_t rings_at =
        rounded(slots_at + slots * (sizeof(profile::ThreadSlot) + sizeof(profile::ThreadWaits)), page_bytes);
    bytes_ = rings_at + slots * profile::ring_stride(ring_bytes);
    fd_ = ::memfd_create("arena", 0);
    EXPECT_EQ(::ftruncate(fd_, static_cast<off_t>(bytes_)), 0);
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
    auto* const header = new (memory_) profile::ArenaHeader;
    header->header_bytes = sizeof(profile::ArenaHeader);
    header->total_bytes = bytes_;
    header->slot_count = slots;
    header->ring_bytes = ring_bytes;
    header->cross_process_offset = exchange;
    header->slots_offset = slots_at;
    header->rings_offset = rings_at;
    header->recorder_pid = ::getpid();
    header->state.store(static_cast<std::uint32_t>(profile::SessionState::running));
    header->heartbeat_ns.store(monotonic_ns());
  }
  ~Arena() {
    ::munmap(memory_, bytes_);
    ::close(fd_);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] profile::ArenaHeader& header() const { return *static_cast<profile::ArenaHeader*>(memory_); }
  /// Also in a child that executes another program.
  [[nodiscard]] std::string name() const { return "/proc/self/fd/" + std::to_string(fd_); }
  [[nodiscard]] profile::ThreadSlot& slot(std::uint32_t index) const {
    return *profile::ArenaView{&header()}.slot(index);
  }
  void cut(std::uint64_t bytes) const { EXPECT_EQ(::ftruncate(fd_, static_cast<off_t>(bytes)), 0); }
  /// Returns a thread's records since the last call.
  [[nodiscard]] Records records(std::uint32_t index) const {
    auto* const ring = static_cast<std::byte*>(memory_) + header().rings_offset +
                       std::size_t{index} * profile::ring_stride(ring_bytes_);
    profile::RingReader reader(slot(index), ring, ring_bytes_);
    std::vector<std::byte> batch;
    reader.drain(batch);
    return split_records(batch);
  }

 private:
  std::uint32_t ring_bytes_;
  std::uint64_t bytes_ = 0;
  int fd_ = -1;
  void* memory_ = nullptr;
};

}  // namespace crosstalk::in_target::test
