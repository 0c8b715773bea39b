// SPDX-License-Identifier: Apache-2.0
#include "profile/ring_reader.h"

#include <algorithm>

#include "profile/counter_reading.h"
#include "profile/ring.h"

namespace crosstalk::profile {

std::optional<std::size_t> fixed_bytes(RecordType type) {
  switch (type) {
    case RecordType::padding:
      return sizeof(RecordHeader);
    case RecordType::process_start:
      return sizeof(ProcessStart);
    case RecordType::process_end:
      return sizeof(ProcessEnd);
    case RecordType::thread_start:
      return sizeof(ThreadStart);
    case RecordType::thread_end:
      return sizeof(ThreadEnd);
    case RecordType::module_load:
      return sizeof(ModuleLoad);
    case RecordType::module_unload:
      return sizeof(ModuleUnload);
    case RecordType::sample:
      return sizeof(Sample);
    case RecordType::watch_open:
      return sizeof(WatchOpen);
    case RecordType::watch_trap:
      return sizeof(WatchTrap);
    case RecordType::watch_close:
      return sizeof(WatchClose);
    case RecordType::line_probe:
      return sizeof(LineProbe);
    case RecordType::block:
      return sizeof(Block);
    case RecordType::message:
      return sizeof(Message);
    case RecordType::shared_mapping:
      return sizeof(SharedMapping);
    case RecordType::lookahead:
      return sizeof(Lookahead);
    case RecordType::thread_creation:
      return sizeof(ThreadCreation);
    case RecordType::counter_reading:
      return sizeof(CounterReading);
    case RecordType::sampled_wait:
      return sizeof(SampledWait);
  }
  return std::nullopt;
}

ParseOutcome parse_records(std::span<const std::byte> bytes, const std::function<void(const RecordView&)>& visit) {
  ParseOutcome outcome;
  while (!bytes.empty()) {
    RecordHeader header;
    if (bytes.size() >= sizeof header) {
      std::memcpy(&header, bytes.data(), sizeof header);
    }
    const std::optional<std::size_t> fixed = fixed_bytes(header.type);
    const std::size_t size = header.size;
    if (size < sizeof header || size % record_alignment != 0 || size > bytes.size() || !fixed || *fixed > size ||
        header.tail > size - *fixed) {
      outcome.corrupt = true;
      return outcome;
    }
    if (header.type != RecordType::padding) {
      ++outcome.records;
      visit(RecordView(header, *fixed, bytes.first(size)));
    }
    bytes = bytes.subspan(size);
  }
  return outcome;
}

std::uint64_t RingReader::waiting() const {
  const std::uint64_t bytes = slot_->head.load(std::memory_order_relaxed) - tail_;
  return bytes <= ring_bytes_ ? bytes : 0;
}

DrainOutcome RingReader::drain(std::vector<std::byte>& batch) {
  DrainOutcome outcome;
  // acquire: the bytes before head are written before we read them.
  const std::uint64_t head = slot_->head.load(std::memory_order_acquire);
  if (head == tail_) {
    return outcome;
  }
  const std::uint64_t bytes = head - tail_;
  if (bytes > ring_bytes_ || head % record_alignment != 0) {
    // Not a position of this ring. Continue at the thread's head, aligned: its next publication repairs both.
    outcome.corrupt = true;
    tail_ = head & ~static_cast<std::uint64_t>(record_alignment - 1);
  } else {
    const auto at = static_cast<std::size_t>(tail_ & (ring_bytes_ - 1U));
    const std::size_t first = std::min<std::size_t>(bytes, ring_bytes_ - at);
    batch.insert(batch.end(), ring_ + at, ring_ + at + first);
    batch.insert(batch.end(), ring_, ring_ + (bytes - first));
    outcome.bytes = bytes;
    tail_ = head;
  }
  // release: the bytes are read before the thread may write there again.
  slot_->tail.store(tail_, std::memory_order_release);
  return outcome;
}

}  // namespace crosstalk::profile
