// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/event_ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

enum EventRingState : std::uint32_t {
  none = 0,
  idle = 1,
  in_use = 2,     // it is read
  abandoned = 3,  // a reader is at work, and unmaps it afterwards
};

constexpr std::uint64_t share = 8;  // one in so many of the bytes that the program may lock

constinit std::atomic<std::uint64_t> mapped_bytes{0};

// Enters `bytes` into what this process has mapped, if the program can spare them.
bool take_room(std::size_t bytes) {
  rlimit64 limit{};
  if (!has_room_for(bytes) || system_call(SYS_prlimit64, 0, RLIMIT_MEMLOCK, nullptr, &limit) < 0) {
    return false;
  }
  const std::uint64_t all = mapped_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (limit.rlim_cur != RLIM64_INFINITY && all > limit.rlim_cur / share) {
    mapped_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  return true;
}

void unmap(EventRing& ring) {
  const std::size_t bytes = page_bytes + ring.data_bytes;
  leave_own_memory(ring.memory);
  system_call(SYS_munmap, ring.memory, bytes);
  mapped_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  ring.memory = nullptr;
  ring.state.store(none, std::memory_order_release);
}

perf_event_mmap_page& words_of(const EventRing& ring) { return *reinterpret_cast<perf_event_mmap_page*>(ring.memory); }

using KernelWord = decltype(perf_event_mmap_page::data_head);

}  // namespace

long map_event_ring(const OwnedEvent& event, std::size_t data_bytes, EventRing& ring) {
  const std::size_t bytes = page_bytes + data_bytes;
  if (!take_room(bytes)) {
    return -ENOMEM;
  }
  const long at = system_call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event.fd, 0);
  if (at < 0) {
    mapped_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return at == -EPERM || at == -EAGAIN ? -ENOMEM : at;  // both: no more of it may be locked
  }
  ring.memory = reinterpret_cast<std::byte*>(at);  // NOLINT: the kernel's answer
  ring.data_bytes = data_bytes;
  if (!enter_own_memory(ring.memory, bytes)) {
    unmap(ring);
    return -ENOMEM;
  }
  ring.state.store(idle, std::memory_order_release);
  return 0;
}

void unmap_event_ring(EventRing& ring) {
  for (std::uint32_t now = ring.state.load(std::memory_order_acquire);;) {
    if (now == none || now == abandoned) {
      return;
    }
    // The state is in_use during the unmapping, so that no other thread begins to read or unmap.
    if (ring.state.compare_exchange_weak(now, now == idle ? in_use : abandoned, std::memory_order_acq_rel)) {
      if (now == idle) {
        unmap(ring);
      }
      return;
    }
  }
}

void forget_event_ring(EventRing& ring) {
  if (ring.memory != nullptr) {
    leave_own_memory(ring.memory);
    mapped_bytes.fetch_sub(page_bytes + ring.data_bytes, std::memory_order_relaxed);
    ring.memory = nullptr;
  }
  ring.state.store(none, std::memory_order_relaxed);
}

EventRingReader::EventRingReader(EventRing& ring) : ring_(ring) {
  std::uint32_t expected = idle;
  may_ = ring.state.compare_exchange_strong(expected, in_use, std::memory_order_acq_rel);
}

EventRingReader::~EventRingReader() {
  std::uint32_t expected = in_use;
  if (may_ && !ring_.state.compare_exchange_strong(expected, idle, std::memory_order_acq_rel)) {
    unmap(ring_);
  }
}

std::span<const std::byte> EventRingReader::data() const { return {ring_.memory + page_bytes, ring_.data_bytes}; }

std::span<std::byte> EventRingReader::whole() const { return {ring_.memory, page_bytes + ring_.data_bytes}; }

std::uint64_t EventRingReader::head() const {
  return std::atomic_ref<KernelWord>(words_of(ring_).data_head).load(std::memory_order_acquire);
}

std::uint64_t EventRingReader::tail() const { return words_of(ring_).data_tail; }

void EventRingReader::give_back(std::uint64_t tail) {
  std::atomic_ref<KernelWord>(words_of(ring_).data_tail).store(tail, std::memory_order_release);
}

}  // namespace crosstalk::in_target
