// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "profile/arena.h"
#include "profile/ring.h"

namespace crosstalk::daemon {

struct ArenaShape {
  std::uint32_t slots = 4096;
  std::uint32_t ring_bytes = 64 * 1024;  // a power of two, of pages

  /// Returns the usual shape, with fewer slots if the file size limit is too low: a memory file counts against it.
  [[nodiscard]] static ArenaShape within(std::uint64_t most_bytes);
};

/// The recorder's arena: an anonymous memory file, sealed against resizing (a target that shrank it would kill the
/// recorder with SIGBUS), and sparse: only touched pages use memory. Maps the part before the rings and, in chunks, the
/// rings that were asked for.
class Arena {
 public:
  [[nodiscard]] static Result<Arena> create(const profile::SessionConfig& config, ArenaShape shape = {});
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  [[nodiscard]] profile::ArenaHeader& header() const { return *view_.header; }
  [[nodiscard]] profile::ThreadSlot& slot(std::uint32_t index) const;
  [[nodiscard]] const profile::ThreadWaits& waits(std::uint32_t index) const;
  /// Returns a ring, which stays mapped. Null if it cannot be mapped (`ulimit -v`).
  [[nodiscard]] const std::byte* ring(std::uint32_t index);
  /// Returns the table behind the ring. Only for a thread whose slot says that it marks regions.
  [[nodiscard]] const profile::ThreadRegions* regions(std::uint32_t index);
  // As created; the header's copy is not read, because targets can write it.
  [[nodiscard]] std::uint32_t slot_count() const { return shape_.slots; }
  [[nodiscard]] std::uint32_t ring_bytes() const { return shape_.ring_bytes; }

  /// Returns the path that a target of this user opens: /proc/PID/fd/N.
  [[nodiscard]] std::string path() const;
  /// A range of slots.
  struct Slots {
    std::uint32_t begin = 0, end = 0;
  };
  /// Returns the first slots from `index` on that begin in memory which was ever touched; empty at slot_count(): there
  /// are none. All others are free, and reading them would take memory.
  [[nodiscard]] Slots touched_slots(std::uint32_t index) const;
  /// Returns the memory use of the touched pages, bytes.
  [[nodiscard]] std::uint64_t bytes_in_use() const;

 private:
  static constexpr std::uint32_t rings_a_chunk = 4;
  Arena() = default;
  [[nodiscard]] std::uint64_t chunk_bytes(std::uint32_t chunk) const;

  UniqueFd fd_;
  profile::ArenaView view_;
  std::uint64_t slots_offset_ = 0, rings_offset_ = 0;
  ArenaShape shape_;
  std::vector<const std::byte*> chunks_;  // of rings_a_chunk rings each; null: not mapped
};

/// True if another recorder observes this process: its arena is mapped here, and so it will be in every child. Call it
/// before an arena is created here.
[[nodiscard]] bool recorded_itself();

}  // namespace crosstalk::daemon
