// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records as a thread's ring holds them.

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "profile/records.h"

namespace crosstalk::in_target::test {

/// The records of a batch that was drained from a ring, each with its header.
inline std::vector<std::vector<std::byte>> split_records(std::span<const std::byte> batch) {
  std::vector<std::vector<std::byte>> found;
  for (std::size_t at = 0; at + sizeof(profile::RecordHeader) <= batch.size();) {
    profile::RecordHeader header;
    std::memcpy(&header, batch.data() + at, sizeof header);
    const auto record = batch.subspan(at, header.size);
    found.emplace_back(record.begin(), record.end());
    at += header.size;
  }
  return found;
}

}  // namespace crosstalk::in_target::test
