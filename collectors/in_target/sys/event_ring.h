// SPDX-License-Identifier: Apache-2.0
// The ring of a perf event, or of a context of our module (ibs_context.h), mapped into the target: the kernel puts
// samples there without a signal.
//
// It is locked memory. The part beyond perf's own allowance for the user (kernel.perf_event_mlock_kb) counts against
// the program's limit (ulimit -l). In some kernels so do the program's sends without copies and its registers for
// asynchronous input and output. So the rings of a process keep to a small part of that limit.
//
// Only handlers of its own thread read a ring, and any thread may unmap it at any time: a thread that comes while the
// ring is read leaves the unmapping to the reader. A forked child does not have it (VM_DONTCOPY). Signal-safe
// throughout.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectors/in_target/sys/perf_events.h"

namespace crosstalk::in_target {

/// The mapped ring of an event. All zero: there is none.
struct EventRing {
  std::atomic<std::uint32_t> state;  // EventRingState
  std::byte* memory = nullptr;       // a page of the kernel's words, then the data
  std::size_t data_bytes = 0;
};

/// Maps the ring of `event`, `data_bytes` of data: pages, their number a power of two. 0, or -errno; -ENOMEM: there is
/// not enough locked or other memory that the program can spare.
long map_event_ring(const OwnedEvent& event, std::size_t data_bytes, EventRing& ring);
void unmap_event_ring(EventRing& ring);
/// In a forked child: its parent's rings are not there.
void forget_event_ring(EventRing& ring);

/// Reading a ring, for a scope. Not while it is read already: in a handler that came between.
class EventRingReader {
 public:
  explicit EventRingReader(EventRing& ring);
  ~EventRingReader();
  EventRingReader(const EventRingReader&) = delete;
  EventRingReader& operator=(const EventRingReader&) = delete;
  /// True if there is a ring to read.
  [[nodiscard]] bool may() const { return may_; }
  [[nodiscard]] std::span<const std::byte> data() const;
  /// The first page and the data, for a ring whose words are not perf's.
  [[nodiscard]] std::span<std::byte> whole() const;
  /// The kernel's next place to write, and the reader's position: bytes from the ring's beginning that never wrap.
  [[nodiscard]] std::uint64_t head() const;
  [[nodiscard]] std::uint64_t tail() const;
  /// Allows the kernel to overwrite everything before `tail`.
  void give_back(std::uint64_t tail);

 private:
  EventRing& ring_;
  bool may_;
};

}  // namespace crosstalk::in_target
