// SPDX-License-Identifier: Apache-2.0
// The observer's use of the recorder's arena (profile/arena.h): it claims a slot for each thread that it watches, and
// writes into its ring the records that the thread would have written itself. One thread writes all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "profile/ring.h"

namespace crosstalk::observer {

/// A piece of mapped memory.
class MappedMemory {
 public:
  /// Nothing: it cannot be mapped.
  [[nodiscard]] static std::optional<MappedMemory> map(int fd, std::uint64_t offset, std::size_t bytes);
  MappedMemory(MappedMemory&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory();

  [[nodiscard]] std::byte* begin() const { return begin_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {begin_, bytes_}; }

 private:
  MappedMemory(std::byte* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {}
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A slot that was claimed, with its ring. The slot's `ended` is its last word: the recorder then frees it.
class ArenaRing {
 public:
  ArenaRing(profile::ThreadSlot& slot, std::uint32_t index, MappedMemory memory, std::uint32_t ring_bytes);

  [[nodiscard]] profile::ThreadSlot& slot() const { return *slot_; }
  /// > 0, unique among the threads that are watched at the time.
  [[nodiscard]] std::uint32_t number() const { return index_ + 1; }
  template <class Record>
  bool write(const Record& record, const void* tail = nullptr, std::size_t tail_bytes = 0, const void* more = nullptr,
             std::size_t more_bytes = 0) {
    return writer_.write(record, tail, tail_bytes, more, more_bytes);
  }
  /// From now on the recorder reads; the ring has a ThreadStart by then.
  void go_live();
  void end();

 private:
  profile::ThreadSlot* slot_;
  std::uint32_t index_;
  MappedMemory memory_;
  profile::RingWriter writer_;
};

class ArenaAccess {
 public:
  /// `path` names the arena: /proc/RECORDER/fd/N.
  [[nodiscard]] static Result<ArenaAccess> open(const std::string& path);

  [[nodiscard]] profile::ArenaHeader& header() const { return *view_.header; }
  /// The lowest slot that is free, for this thread. Null: there is none, or no memory for its ring, which is counted.
  [[nodiscard]] std::unique_ptr<ArenaRing> claim(std::int32_t pid, std::int32_t tid);

 private:
  ArenaAccess(UniqueFd fd, MappedMemory memory);
  UniqueFd fd_;
  MappedMemory memory_;
  profile::ArenaView view_;
};

}  // namespace crosstalk::observer
