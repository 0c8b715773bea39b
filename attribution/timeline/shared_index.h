// SPDX-License-Identifier: Apache-2.0
// Identifies memory that processes share, though each may have mapped it at an address of its own.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "attribution/timeline/rows_by_address.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// The identity of a line across processes: the shared file (or memory without one), and the offset in it. It is the
/// same in processes that have mapped it at different addresses.
struct SharedBytes {
  const profile::SharedMappingRow* mapping = nullptr;
  std::uint64_t file_offset = 0;
};

/// A byte of memory: the same for all processes that share it, another one for each process otherwise.
struct MemoryPlace {
  /// The number of the process, or that of what is shared from `first_shared` on.
  std::uint32_t space = 0;
  std::uint64_t address = 0;  // of shared memory, the offset in its file
  static constexpr std::uint32_t first_shared = 0x8000'0000;
  static constexpr std::uint32_t kernel = UINT32_MAX;
  [[nodiscard]] bool is_shared() const { return space >= first_shared; }
  auto operator<=>(const MemoryPlace&) const = default;
};

/// Shared mappings by address. Safe to share between threads.
class SharedIndex {
 public:
  /// `mappings` must outlive this.
  explicit SharedIndex(std::span<const profile::SharedMappingRow> mappings);
  [[nodiscard]] std::optional<SharedBytes> find(Moment moment, std::uint64_t address, bool* alone = nullptr) const;
  /// The place of an address of user space.
  [[nodiscard]] MemoryPlace place(Moment moment, std::uint64_t address) const;

 private:
  RowsByAddress<profile::SharedMappingRow> rows_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> numbers_;  // by device and inode
};

}  // namespace crosstalk::attribution
