// SPDX-License-Identifier: Apache-2.0
// The writing end of a thread's ring (arena.h). It is used inside the observed process, in signal handlers
// too, and by the observer: no allocation, no exception, no lock, no libc call but memcpy; nothing here can block.
//
// One thread writes a ring, but in nested ways: a signal handler may interrupt a write of the same thread,
// at any instruction, and write itself. So
//   - a write reserves its bytes first, by a compare-and-swap of `reserved_`: a write that interrupts it
//     reserves the bytes after them, and neither touches the other's bytes;
//   - `head` is published by the outermost write only, when everything reserved before it is written.
// A write that interrupts another must finish first (in signal handlers it does), and every successful reserve()
// is followed by one commit(). If the target's own handler interrupts a write and jumps out of it with
// siglongjmp(), that write stays open, and the thread publishes nothing more.
//
// The reading end is ring_reader.h. docs/ring-records.md specifies the protocol.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "profile/arena.h"
#include "profile/records.h"
#include "profile/wait_table.h"

namespace crosstalk::profile {

/// The size and the alignment of a record are multiples of this, bytes.
inline constexpr std::size_t record_alignment = 8;
/// The largest record, header and tail included: RecordHeader::size has 16 bits.
inline constexpr std::size_t max_record_bytes = 0xfff8;

/// Bytes that a record of `fixed` bytes with a tail of `tail` bytes takes in a ring.
[[nodiscard]] constexpr std::size_t record_bytes(std::size_t fixed, std::size_t tail = 0) {
  return (fixed + tail + record_alignment - 1) & ~(record_alignment - 1);
}

/// Writes records into one slot's ring. A detached writer (the initial state) drops everything silently.
/// Constant-initialised. One thread only; see above.
class RingWriter {
 public:
  constexpr RingWriter() = default;
  RingWriter(const RingWriter&) = delete;
  RingWriter& operator=(const RingWriter&) = delete;

  /// Attaches to a slot that this thread has claimed. `ring` is its ring, `ring_bytes` a power of two. No
  /// signal handler may write to this ring meanwhile.
  void attach(ThreadSlot* slot, std::byte* ring, std::uint32_t ring_bytes) {
    depth_.store(0, std::memory_order_relaxed);
    reserved_.store(slot->head.load(std::memory_order_relaxed), std::memory_order_relaxed);
    ring_ = ring;
    ring_bytes_ = ring_bytes;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    slot_ = slot;
  }

  /// Detaches from the slot; later writes are dropped silently (in a fork's child, say).
  void detach() {
    slot_ = nullptr;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  [[nodiscard]] ThreadSlot* slot() const { return slot_; }

  /// Reserves one record of `bytes` bytes (record_bytes() of its parts, at most max_record_bytes). The caller fills in
  /// all of it, header included, then calls commit(). Null if the ring is full or the size impossible (the slot counts
  /// the loss), or if the writer is detached: commit() must not be called then. The reservation holds a padding record
  /// until it is filled in, so that a reader skips one that was committed empty.
  [[nodiscard]] std::byte* reserve(std::size_t bytes) {
    if (slot_ == nullptr) {
      return nullptr;
    }
    enter();
    if (bytes < sizeof(RecordHeader) || bytes > max_record_bytes || bytes % record_alignment != 0) {
      return lose(bytes);
    }
    std::uint64_t begin = reserved_.load(std::memory_order_relaxed);
    std::size_t padding = 0;
    do {
      const std::size_t to_end = ring_bytes_ - static_cast<std::size_t>(begin & (ring_bytes_ - 1U));
      padding = bytes > to_end ? to_end : 0;
      // Acquire: the recorder has read the old bytes before ours overwrite them.
      const std::uint64_t used = begin + padding + bytes - slot_->tail.load(std::memory_order_acquire);
      if (used > ring_bytes_) {
        return lose(bytes);
      }
    } while (!reserved_.compare_exchange_weak(begin, begin + padding + bytes, std::memory_order_relaxed));
    if (padding != 0) {
      put_padding(begin, padding);
    }
    return put_padding(begin + padding, bytes);
  }

  /// Ends the write that the last open reserve() began; the outermost one publishes.
  void commit() { leave(); }

  /// Writes `record` with a tail of up to two pieces; sets the size and tail in its header (the caller sets the type).
  /// False if it was lost; the slot counts the loss.
  template <class Record>
  bool write(Record record, const void* tail = nullptr, std::size_t tail_bytes = 0, const void* more = nullptr,
             std::size_t more_bytes = 0) {
    static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) % record_alignment == 0);
    const std::size_t size = record_bytes(sizeof(Record), tail_bytes + more_bytes);
    std::byte* at = reserve(size);
    if (at == nullptr) {
      return false;
    }
    record.header.size = static_cast<std::uint16_t>(size);
    record.header.tail = static_cast<std::uint32_t>(tail_bytes + more_bytes);
    std::memcpy(at, &record, sizeof(Record));
    if (tail_bytes != 0) {
      std::memcpy(at + sizeof(Record), tail, tail_bytes);
    }
    if (more_bytes != 0) {
      std::memcpy(at + sizeof(Record) + tail_bytes, more, more_bytes);
    }
    commit();
    return true;
  }

 private:
  // A load and a store suffice for depth_: a handler that interrupts between them restores the value that it found.
  void enter() {
    depth_.store(depth_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  void leave() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint32_t depth = depth_.load(std::memory_order_relaxed);
    if (depth > 1) {
      depth_.store(depth - 1, std::memory_order_relaxed);
      return;
    }
    // A nested write does not publish while depth_ > 0, so look again after setting it to 0. A later
    // one publishes itself. So head never goes back, and everything is published.
    std::uint64_t end = 0;
    do {
      depth_.store(1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      end = reserved_.load(std::memory_order_relaxed);
      slot_->head.store(end, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      depth_.store(0, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } while (reserved_.load(std::memory_order_relaxed) != slot_->head.load(std::memory_order_relaxed));
  }

  std::byte* lose(std::size_t bytes) {
    slot_->lost_records.fetch_add(1, std::memory_order_relaxed);
    slot_->lost_bytes.fetch_add(bytes, std::memory_order_relaxed);
    leave();
    return nullptr;
  }

  std::byte* put_padding(std::uint64_t begin, std::size_t bytes) {
    std::byte* at = ring_ + static_cast<std::size_t>(begin & (ring_bytes_ - 1U));
    const RecordHeader header{RecordType::padding, static_cast<std::uint16_t>(bytes), 0};
    std::memcpy(at, &header, sizeof header);
    return at;
  }

  ThreadSlot* slot_ = nullptr;
  std::byte* ring_ = nullptr;
  std::uint32_t ring_bytes_ = 0;
  std::atomic<std::uint32_t> depth_ = 0;     // open writes of this thread
  std::atomic<std::uint64_t> reserved_ = 0;  // bytes reserved so far; head once published
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

/// The part of a mapped arena that all processes share. Only valid() checks bounds: call it first. Usable on both
/// sides.
struct ArenaView {
  ArenaHeader* header = nullptr;

  [[nodiscard]] ThreadSlot* slot(std::uint32_t index) const {
    return reinterpret_cast<ThreadSlot*>(reinterpret_cast<std::byte*>(header) + header->slots_offset) + index;
  }
  [[nodiscard]] ThreadWaits* waits(std::uint32_t index) const {
    return reinterpret_cast<ThreadWaits*>(slot(header->slot_count)) + index;  // they follow the slots
  }
  [[nodiscard]] std::byte* cross_process() const {
    return reinterpret_cast<std::byte*>(header) + header->cross_process_offset;
  }
  /// True when the header describes an arena of this version that lies within `bytes` bytes.
  [[nodiscard]] bool valid(std::size_t bytes) const {
    const std::uint64_t slots = header->slot_count;
    const std::uint64_t ring = header->ring_bytes;
    return bytes >= sizeof(ArenaHeader) && header->magic == arena_magic && header->version == arena_version &&
           header->header_bytes == sizeof(ArenaHeader) && header->total_bytes <= bytes && ring != 0 &&
           (ring & (ring - 1)) == 0 && header->cross_process_offset >= sizeof(ArenaHeader) &&
           header->cross_process_offset % cache_line == 0 && header->cross_process_offset <= header->slots_offset &&
           cross_process_bytes <= header->slots_offset - header->cross_process_offset &&
           header->slots_offset % cache_line == 0 && header->slots_offset <= header->rings_offset &&
           slots * (sizeof(ThreadSlot) + sizeof(ThreadWaits)) <= header->rings_offset - header->slots_offset &&
           header->rings_offset <= header->total_bytes &&
           slots * ring_stride(header->ring_bytes) <= header->total_bytes - header->rings_offset;
  }
};

}  // namespace crosstalk::profile
