// SPDX-License-Identifier: Apache-2.0
// This process's mapping of the arena: the shared part (header, cross-process state, slots) from the start, rings some
// at a time, as its threads come.
//
// Keeps no descriptor and uses the arena's name once: later the program may have changed its root, user or namespaces,
// and could not open it again. mremap() of no bytes of a shared mapping makes another mapping of the same file, from
// there on and of any size: rings are mapped so, from the nearest mapping before them in the file. The part in between
// is unmapped at once. Mapped rings stay, for the threads to come.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profile/region_table.h"

namespace crosstalk::in_target {

/// Static storage, all zero at first.
class RingMemory {
 public:
  static constexpr std::uint32_t rings_a_chunk = 4;
  static constexpr std::uint32_t most_chunks = 1024;

  /// Uses the mapping of the arena up to its rings, which ends at `shared_end`. False: the arena has more rings than
  /// are provided for, or of another size.
  bool start(std::byte* shared_end, std::uint32_t slot_count, std::uint32_t ring_bytes);
  /// Unmaps all rings. No thread may use a ring any more, or ask for one until the next start().
  void stop();
  /// The ring of slot `index`, mapped if it is not yet; null when that fails. Signal-safe.
  std::byte* ring(std::uint32_t index);
  /// Returns the regions of slot `index`, which lie behind its ring.
  profile::ThreadRegions* regions(std::uint32_t index);
  /// Returns the end of the part that all share.
  [[nodiscard]] std::byte* shared_end() const;
  [[nodiscard]] std::uint32_t ring_bytes() const { return ring_bytes_; }

 private:
  std::byte* map_chunk(std::uint32_t chunk);

  std::byte* last_page_ = nullptr;  // of the part that all share; rings follow it in the file
  std::uint32_t ring_bytes_ = 0;
  std::size_t stride_ = 0;  // from ring to ring
  std::uint32_t slot_count_ = 0;
  std::atomic<std::byte*> chunk_[most_chunks];
};

}  // namespace crosstalk::in_target
