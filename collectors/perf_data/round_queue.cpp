// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_data/round_queue.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace crosstalk::perf_data {
namespace {

bool later(const QueuedRecord& a, const QueuedRecord& b) {
  return std::tie(a.time_ns, a.order) > std::tie(b.time_ns, b.order);
}

std::size_t footprint(const QueuedRecord& record) {
  constexpr std::size_t of_block = 16;  // added by malloc
  return sizeof record + (record.own ? record.bytes.size() + of_block : 0);
}

}  // namespace

Result<void> RoundQueue::put(std::uint64_t time_ns, const Place& place, std::span<const std::byte> bytes, bool keep,
                             const Take& take) {
  QueuedRecord record{time_ns, put_++, place, bytes, nullptr};
  if (keep) {
    record.own = std::make_unique<std::byte[]>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), record.own.get());
    record.bytes = {record.own.get(), bytes.size()};
  }
  newest_ns_ = std::max(newest_ns_, time_ns);
  bytes_ += footprint(record);
  heap_.push_back(std::move(record));
  std::push_heap(heap_.begin(), heap_.end(), later);
  if (bytes_ > most_bytes_) {
    while (bytes_ > most_bytes_ / 2) {
      if (Result<void> handed = hand_out_first(take); !handed) {
        return handed;
      }
    }
  }
  return {};
}

Result<void> RoundQueue::hand_out_first(const Take& take) {
  std::pop_heap(heap_.begin(), heap_.end(), later);
  const QueuedRecord record = std::move(heap_.back());
  heap_.pop_back();
  bytes_ -= footprint(record);
  out_of_order_ += record.time_ns < handed_out_ns_ ? 1 : 0;
  handed_out_ns_ = std::max(handed_out_ns_, record.time_ns);
  return take(record);
}

Result<void> RoundQueue::end_round(const Take& take) {
  while (!heap_.empty() && heap_.front().time_ns <= newest_of_last_round_ns_) {
    if (Result<void> handed = hand_out_first(take); !handed) {
      return handed;
    }
  }
  newest_of_last_round_ns_ = newest_ns_;
  return {};
}

Result<void> RoundQueue::end(const Take& take) {
  while (!heap_.empty()) {
    if (Result<void> handed = hand_out_first(take); !handed) {
      return handed;
    }
  }
  return {};
}

}  // namespace crosstalk::perf_data
