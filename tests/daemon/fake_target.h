// SPDX-License-Identifier: Apache-2.0
// A target that follows docs/ring-records.md by hand: as the preloaded library, without its signals.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/unique_fd.h"
#include "profile/ring.h"

namespace crosstalk::daemon::test {

inline std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Maps the arena that the environment names; exits with 99 when there is none.
inline profile::ArenaView map_arena() {
  const char* path = std::getenv(profile::arena_variable);
  const UniqueFd fd(path != nullptr ? ::open(path, O_RDWR | O_CLOEXEC) : -1);
  struct stat status = {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    std::_Exit(99);
  }
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  const profile::ArenaView arena{static_cast<profile::ArenaHeader*>(memory)};
  if (memory == MAP_FAILED || !arena.valid(bytes)) {
    std::_Exit(99);
  }
  return arena;
}

/// A ring of the arena, all of which is mapped here.
inline std::byte* ring_of(const profile::ArenaView& arena, std::uint32_t index) {
  return reinterpret_cast<std::byte*>(arena.header) + arena.header->rings_offset +
         std::size_t{index} * profile::ring_stride(arena.header->ring_bytes);
}

/// One observed thread: its slot, its ring, and the records that it writes. Used by that thread only.
class FakeThread {
 public:
  explicit FakeThread(const profile::ArenaView& arena, const char* name) : arena_(arena) {
    for (std::uint32_t i = 0; i < arena.header->slot_count && slot_ == nullptr; ++i) {
      auto expected = static_cast<std::uint32_t>(profile::SlotState::free);
      if (arena.slot(i)->state.compare_exchange_strong(expected,
                                                       static_cast<std::uint32_t>(profile::SlotState::claimed))) {
        slot_ = arena.slot(i);
        writer_.attach(slot_, ring_of(arena, i), arena.header->ring_bytes);
      }
    }
    if (slot_ == nullptr) {
      arena.header->threads_unobserved.fetch_add(1);
      return;
    }
    slot_->pid.store(::getpid());
    slot_->tid.store(static_cast<std::int32_t>(::syscall(SYS_gettid)));
    profile::ThreadStart start;
    start.header.type = profile::RecordType::thread_start;
    start.time_ns = now_ns();
    start.pid = ::getpid();
    start.tid = slot_->tid.load();
    std::strncpy(start.name, name, sizeof start.name - 1);
    writer_.write(start);
    set_state(profile::SlotState::live);
  }

  /// Once a process, by its first thread, before it has others.
  void attach_process(bool after_fork = false) {
    profile::ProcessStart start;
    start.header.type = profile::RecordType::process_start;
    start.time_ns = now_ns();
    start.pid = ::getpid();
    start.parent_pid = ::getppid();
    start.after_fork = after_fork ? 1 : 0;
    const std::string tail("/bin/fake\0fake\0an argument", 26);
    writer_.write(start, tail.data(), tail.size());
  }

  bool sample(std::uint64_t ip, std::size_t stack_bytes = 0) {
    profile::Sample sample;
    sample.header.type = profile::RecordType::sample;
    sample.time_ns = now_ns();
    sample.ip = ip;
    sample.access_ip = ip - 4;
    sample.address = 0x7f0000001000;
    sample.cpu_ns = 1'000'000;
    sample.width = 8;
    sample.access = AccessKind::load;
    sample.from = profile::AddressFrom::retired;
    sample.has_stack = stack_bytes != 0 ? 1 : 0;
    profile::StackSlice slice;
    slice.registers[Register::rsp] = 0x7fff00000000;
    slice.bytes = stack_bytes;
    static const char stack[8192] = {};
    add(slot_->samples, 1);
    add(slot_->cpu_ns, sample.cpu_ns);
    add(slot_->handlers_ns, 10'000);
    return stack_bytes != 0 ? writer_.write(sample, &slice, sizeof slice, stack, stack_bytes) : writer_.write(sample);
  }

  void message(const char* code, const std::string& text) {
    profile::Message record;
    record.header.type = profile::RecordType::message;
    record.time_ns = now_ns();
    std::strncpy(record.code, code, sizeof record.code - 1);
    writer_.write(record, text.data(), text.size());
  }

  void end() {
    profile::ThreadEnd record;
    record.header.type = profile::RecordType::thread_end;
    record.time_ns = now_ns();
    record.cpu_ns = slot_->cpu_ns.load() + 500;
    writer_.write(record);
    set_state(profile::SlotState::ended);
  }

  [[nodiscard]] profile::RingWriter& writer() { return writer_; }
  [[nodiscard]] profile::ThreadSlot* slot() { return slot_; }

 private:
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t value) {
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
  void set_state(profile::SlotState state) {
    slot_->state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
  }

  profile::ArenaView arena_;
  profile::ThreadSlot* slot_ = nullptr;
  profile::RingWriter writer_;
};

}  // namespace crosstalk::daemon::test
