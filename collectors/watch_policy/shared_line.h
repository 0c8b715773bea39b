// SPDX-License-Identifier: Apache-2.0
// A line of memory that processes share has another address in every one of them. It is identified by the mapped object
// and the offset in it.
#pragma once

#include <cstdint>

#include "profile/watch_settings.h"

namespace crosstalk::watch_policy {

/// A line of shared memory, the same for all processes.
struct SharedLine {
  std::uint64_t device = 0, inode = 0;
  std::uint64_t file_offset = 0;  // of the line's first byte
  bool known = false;             // false: not in shared memory, or it is not known which
  bool others = false;            // other processes use that memory, too

  /// Returns a word that identifies the mapped object; not 0.
  [[nodiscard]] constexpr std::uint64_t object() const { return mix(inode ^ mix(device)) | 1U; }
  /// Returns the key of the line on a board.
  [[nodiscard]] constexpr std::uint64_t key() const {
    return mix(object() ^ file_offset) & ~(static_cast<std::uint64_t>(profile::cache_line) - 1);
  }

 private:
  /// The finalizer of MurmurHash3: every bit of the result depends on every bit of the word.
  static constexpr std::uint64_t mix(std::uint64_t word) {
    word = (word ^ word >> 33U) * 0xff51afd7ed558ccdU;
    word = (word ^ word >> 33U) * 0xc4ceb9fe1a85ec53U;
    return word ^ word >> 33U;
  }
};

}  // namespace crosstalk::watch_policy
