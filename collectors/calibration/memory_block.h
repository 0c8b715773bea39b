// SPDX-License-Identifier: Apache-2.0
// Memory that kernels work on: mapped, touched, in huge pages if the kernel has any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"

namespace crosstalk::collectors::calibration {

class MemoryBlock {
 public:
  MemoryBlock() = default;
  ~MemoryBlock();
  MemoryBlock(MemoryBlock&& other) noexcept { swap(other); }
  MemoryBlock& operator=(MemoryBlock&& other) noexcept {
    swap(other);
    return *this;
  }
  MemoryBlock(const MemoryBlock&) = delete;
  MemoryBlock& operator=(const MemoryBlock&) = delete;

  /// `bytes` of zeros, aligned to huge pages, each page written to by the calling thread: on its node. On a busy
  /// machine that takes seconds for each GiB; it fails when it is not done by `deadline_ns`.
  [[nodiscard]] static Result<MemoryBlock> map(std::uint64_t bytes, std::uint64_t deadline_ns = UINT64_MAX);

  [[nodiscard]] std::byte* data() const { return begin_; }
  [[nodiscard]] std::uint64_t size() const { return bytes_; }
  /// Returns the page size of most of the block, as the kernel says in /proc/self/smaps.
  [[nodiscard]] std::uint64_t page_bytes() const;

 private:
  void swap(MemoryBlock& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(mapping_bytes_, other.mapping_bytes_);
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
  }

  void* mapping_ = nullptr;
  std::uint64_t mapping_bytes_ = 0;
  std::byte* begin_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// Memory that programs can have without swapping, in bytes (/proc/meminfo); 0: not known.
[[nodiscard]] std::uint64_t available_memory();

}  // namespace crosstalk::collectors::calibration
