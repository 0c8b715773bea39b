// SPDX-License-Identifier: Apache-2.0
// The reading end of a thread's ring (arena.h). The recorder copies the bytes of [tail, head) first and checks them in
// private memory, because the process that wrote them may be corrupt: nothing changes between a check and its use. The
// writing end is ring.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "profile/arena.h"
#include "profile/records.h"

namespace crosstalk::profile {

/// One whole record in the reader's own memory, with a checked header: the type is known, and the fixed part and the
/// tail lie within `bytes`. The values of fields are unchecked.
class RecordView {
 public:
  RecordView(RecordHeader header, std::size_t fixed, std::span<const std::byte> bytes)
      : header_(header), fixed_(fixed), bytes_(bytes) {}

  [[nodiscard]] RecordType type() const { return header_.type; }
  /// A copy of the fixed part; `Record` must be the struct of type().
  template <class Record>
  [[nodiscard]] Record as() const {
    Record record;
    std::memcpy(&record, bytes_.data(), sizeof record);
    return record;
  }
  [[nodiscard]] std::span<const std::byte> tail() const { return bytes_.subspan(fixed_, header_.tail); }

 private:
  RecordHeader header_;
  std::size_t fixed_;
  std::span<const std::byte> bytes_;
};

/// sizeof the fixed part of a record of this type; nothing for a type that does not exist.
[[nodiscard]] std::optional<std::size_t> fixed_bytes(RecordType type);

struct ParseOutcome {
  std::uint64_t records = 0;
  bool corrupt = false;  // the rest was given up
};

/// Walks the records in `bytes` and calls `visit` for each but padding. Stops at the first impossible one: a size of 0,
/// no multiple of 8, or beyond the end; an unknown type; a tail larger than its record.
ParseOutcome parse_records(std::span<const std::byte> bytes, const std::function<void(const RecordView&)>& visit);

struct DrainOutcome {
  std::uint64_t bytes = 0;  // appended
  bool corrupt = false;     // head was no position of this ring; all up to it was skipped
};

/// The recorder's side of one ring. Keeps its own tail and ignores values that a target writes into the slot's. Not
/// thread-safe; one reader for each ring.
class RingReader {
 public:
  /// `slot` and `ring` (of `ring_bytes` bytes, a power of two) stay mapped while the reader lives.
  RingReader(ThreadSlot& slot, const std::byte* ring, std::uint32_t ring_bytes)
      : slot_(&slot), ring_(ring), ring_bytes_(ring_bytes), tail_(slot.tail.load(std::memory_order_relaxed)) {}

  /// Appends the bytes that the thread has published since the last drain to `batch` and frees their room in the ring.
  /// At most one ring's worth.
  DrainOutcome drain(std::vector<std::byte>& batch);

  /// Bytes published and not yet drained; 0 if head is no position of this ring.
  [[nodiscard]] std::uint64_t waiting() const;

 private:
  ThreadSlot* slot_;
  const std::byte* ring_;
  std::uint32_t ring_bytes_;
  std::uint64_t tail_;
};

}  // namespace crosstalk::profile
