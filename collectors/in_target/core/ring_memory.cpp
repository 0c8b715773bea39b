// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/core/ring_memory.h"

#include <sys/mman.h>

#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/system_calls.h"
#include "profile/arena.h"

namespace crosstalk::in_target {

bool RingMemory::start(std::byte* shared_end, std::uint32_t slot_count, std::uint32_t ring_bytes) {
  if (slot_count > most_chunks * rings_a_chunk || ring_bytes % page_bytes != 0) {
    return false;
  }
  last_page_ = shared_end - page_bytes;
  ring_bytes_ = ring_bytes;
  stride_ = profile::ring_stride(ring_bytes);
  slot_count_ = slot_count;
  return true;
}

std::byte* RingMemory::shared_end() const { return last_page_ + page_bytes; }

void RingMemory::stop() {
  const std::size_t chunk_bytes = rings_a_chunk * stride_;
  for (std::uint32_t chunk = 0; chunk < most_chunks; ++chunk) {
    if (std::byte* const mapped = chunk_[chunk].exchange(nullptr, std::memory_order_acq_rel); mapped != nullptr) {
      const std::uint32_t left = slot_count_ - chunk * rings_a_chunk;
      leave_own_memory(mapped);
      system_call(SYS_munmap, mapped, left < rings_a_chunk ? left * stride_ : chunk_bytes);
    }
  }
}

std::byte* RingMemory::ring(std::uint32_t index) {
  if (index >= slot_count_) {
    return nullptr;
  }
  const std::uint32_t chunk = index / rings_a_chunk;
  std::byte* mapped = chunk_[chunk].load(std::memory_order_acquire);
  if (mapped == nullptr) {
    mapped = map_chunk(chunk);
  }
  return mapped == nullptr ? nullptr : mapped + (index % rings_a_chunk) * stride_;
}

profile::ThreadRegions* RingMemory::regions(std::uint32_t index) {
  std::byte* const of_thread = ring(index);
  return of_thread == nullptr ? nullptr : reinterpret_cast<profile::ThreadRegions*>(of_thread + ring_bytes_);
}

std::byte* RingMemory::map_chunk(std::uint32_t chunk) {
  const std::size_t chunk_bytes = rings_a_chunk * stride_;
  const std::uint32_t first = chunk * rings_a_chunk;
  const std::uint32_t left = slot_count_ - first;
  const std::size_t bytes = (left < rings_a_chunk ? left : rings_a_chunk) * stride_;
  std::byte* from = last_page_;
  std::size_t between = page_bytes + chunk * chunk_bytes;  // from there to the chunk, in the file
  for (std::uint32_t before = chunk; before-- > 0;) {
    if (std::byte* const mapped = chunk_[before].load(std::memory_order_acquire); mapped != nullptr) {
      from = mapped;
      between = (chunk - before) * chunk_bytes;
      break;
    }
  }
  if (!has_room_for(bytes, between)) {
    return nullptr;
  }
  // The new mapping is locked if the old one is, and then all of it would be populated.
  system_call(SYS_munlock, from, page_bytes);
  const long at = system_call(SYS_mremap, from, 0, between + bytes, MREMAP_MAYMOVE, 0);
  if (at < 0) {
    return nullptr;
  }
  auto* begin = reinterpret_cast<std::byte*>(at);  // NOLINT: the kernel's answer
  system_call(SYS_munmap, begin, between);
  std::byte* const rings = begin + between;
  std::byte* other = nullptr;
  if (!chunk_[chunk].compare_exchange_strong(other, rings, std::memory_order_acq_rel)) {
    system_call(SYS_munmap, rings, bytes);  // another thread was faster
    return other;
  }
  enter_own_memory(rings, bytes);
  return rings;
}

}  // namespace crosstalk::in_target
