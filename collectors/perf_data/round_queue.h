// SPDX-License-Identifier: Apache-2.0
// Puts records in the order of their times.
//
// perf writes the rings of all processors in rounds. A round is in order for each processor only, but no record of a
// later round is earlier than the newest record of the round before it. So at the end of a round, all records that are
// no newer than the newest of the round before it can go out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "collectors/perf_data/records.h"

namespace crosstalk::perf_data {

struct QueuedRecord {
  std::uint64_t time_ns = 0;
  std::uint64_t order = 0;  // in which it was put, for equal times
  Place place;
  std::span<const std::byte> bytes;
  std::unique_ptr<std::byte[]> own;  // owns `bytes`, if nobody else keeps them
};

class RoundQueue {
 public:
  using Take = std::function<Result<void>(const QueuedRecord& record)>;

  /// `most_bytes`: a recording whose rounds never end takes no more memory; then the older half goes out early.
  explicit RoundQueue(std::size_t most_bytes = std::size_t{256} << 20U) : most_bytes_(most_bytes) {}

  /// `keep`: the bytes are copied, since their owner will not keep them.
  [[nodiscard]] Result<void> put(std::uint64_t time_ns, const Place& place, std::span<const std::byte> bytes, bool keep,
                                 const Take& take);
  [[nodiscard]] Result<void> end_round(const Take& take);
  [[nodiscard]] Result<void> end(const Take& take);

  /// Records that went out later than one with a later time.
  [[nodiscard]] std::uint64_t out_of_order() const { return out_of_order_; }

 private:
  [[nodiscard]] Result<void> hand_out_first(const Take& take);

  std::vector<QueuedRecord> heap_;  // the earliest first
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::uint64_t put_ = 0;
  std::uint64_t newest_ns_ = 0, newest_of_last_round_ns_ = 0, handed_out_ns_ = 0;
  std::uint64_t out_of_order_ = 0;
};

}  // namespace crosstalk::perf_data
