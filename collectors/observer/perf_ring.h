// SPDX-License-Identifier: Apache-2.0
// A perf ring, which the kernel writes and this process reads.
//
// The kernel writes data_head after the bytes (we load it with acquire); we write data_tail after we have copied them
// out (release), and the kernel writes no further than that. It drops and counts records without room (PerfLost).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

struct perf_event_mmap_page;

namespace crosstalk::observer {

/// Appends the bytes [tail, head) of a ring to `out` and moves `tail` to `head`. Both count from the ring's beginning
/// and never wrap; the size of `ring` is a power of two. False: the ring cannot hold so many, and they are given up.
bool copy_ring(std::span<const std::byte> ring, std::uint64_t head, std::uint64_t& tail, std::vector<std::byte>& out);

/// The ring of one event, and of others that write into it. Movable. Not thread-safe.
class PerfRing {
 public:
  /// `pages` of data, a power of two. Errors: permission if the user has no locked memory left for it.
  [[nodiscard]] static Result<PerfRing> map(int event, std::uint32_t pages);
  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&& other) noexcept;
  PerfRing(const PerfRing&) = delete;
  PerfRing& operator=(const PerfRing&) = delete;
  ~PerfRing();

  /// Appends the bytes since the last call. False: bytes were given up.
  bool drain(std::vector<std::byte>& out);

 private:
  PerfRing() = default;
  void unmap();

  perf_event_mmap_page* control_ = nullptr;
  std::size_t data_bytes_ = 0;
};

}  // namespace crosstalk::observer
