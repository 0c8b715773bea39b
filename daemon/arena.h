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

  /// The usual one, with fewer slots where files cannot be so large: a memory file is one.
  [[nodiscard]] static ArenaShape within(std::uint64_t most_bytes);
};

/// The recorder's arena: an anonymous memory file, sealed against resizing (a target that shrank it would
/// kill the recorder with SIGBUS), sparse: only touched pages count. Mapped here are the part before the rings and,
/// some at a time, the rings that were asked for.
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
  /// Null when it cannot be mapped (`ulimit -v`). It stays mapped.
  [[nodiscard]] const std::byte* ring(std::uint32_t index);
  /// What lies behind it, of a thread whose slot says that it marks regions.
  [[nodiscard]] const profile::ThreadRegions* regions(std::uint32_t index);
  // As made; the header is writable by targets and not asked again.
  [[nodiscard]] std::uint32_t slot_count() const { return shape_.slots; }
  [[nodiscard]] std::uint32_t ring_bytes() const { return shape_.ring_bytes; }

  /// How a target of this user opens it: /proc/PID/fd/N.
  [[nodiscard]] std::string path() const;
  /// Bytes of memory that its touched pages take.
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

/// Does another recorder observe this very process? It then has that one's arena mapped, and so will whatever it
/// starts. To be asked before an arena is made here.
[[nodiscard]] bool recorded_itself();

}  // namespace crosstalk::daemon
