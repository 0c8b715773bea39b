// SPDX-License-Identifier: Apache-2.0
#include "attribution/timeline/shared_index.h"

namespace crosstalk::attribution {

SharedIndex::SharedIndex(std::span<const profile::SharedMappingRow> mappings) : rows_(mappings) {
  for (const profile::SharedMappingRow& row : mappings) {
    numbers_.try_emplace({row.device, row.inode}, static_cast<std::uint32_t>(numbers_.size()));
  }
}

std::optional<SharedBytes> SharedIndex::find(Moment moment, std::uint64_t address, bool* alone) const {
  const profile::SharedMappingRow* row = rows_.find(moment, address, alone);
  return row == nullptr ? std::nullopt : std::optional(SharedBytes{row, row->file_offset + (address - row->begin)});
}

MemoryPlace SharedIndex::place(Moment moment, std::uint64_t address) const {
  const auto bytes = numbers_.empty() ? std::nullopt : find(moment, address);
  if (!bytes) {
    return {moment.process.value, address};
  }
  const auto number = numbers_.find({bytes->mapping->device, bytes->mapping->inode});
  return {MemoryPlace::first_shared + number->second, bytes->file_offset};
}

}  // namespace crosstalk::attribution
