// SPDX-License-Identifier: Apache-2.0
// Tells whether a file without a build id has changed.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace crosstalk {

/// Fills `bytes` from the file at offset `at`. False if the file has fewer bytes, or on an error.
[[nodiscard]] inline bool read_all(const UniqueFd& file, std::vector<char>& bytes, std::int64_t at) {
  for (std::size_t have = 0; have < bytes.size();) {
    const ssize_t got =
        ::pread(file.get(), bytes.data() + have, bytes.size() - have, at + static_cast<std::int64_t>(have));
    if (got <= 0) {
      return false;
    }
    have += static_cast<std::size_t>(got);
  }
  return true;
}

/// Returns a hash of a file's size and bytes, 0 if it cannot be read. Above 16 MiB it covers the first and the last 8
/// MiB only, because it is computed at the start of a recording. Profiles store it, so it must never change
/// (docs/profile-schema.md).
[[nodiscard]] inline std::uint64_t content_hash(const std::string& path) {
  constexpr std::int64_t part = 8 << 20;
  constexpr std::int64_t at_once = 256 << 10;
  static_assert(part % at_once == 0 && at_once % 8 == 0);
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return 0;
  }
  const std::int64_t size = status.st_size;
  auto hash = static_cast<std::uint64_t>(size);
  std::vector<char> bytes;
  for (std::int64_t at = 0; at < size; at += at_once) {
    at = at == part && size > 2 * part ? size - part : at;
    bytes.resize(static_cast<std::size_t>(std::min(at_once, size - at)));
    if (!read_all(file, bytes, at)) {
      return 0;
    }
    bytes.resize((bytes.size() + 7) / 8 * 8);  // with zeros
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, 8);
      hash = (std::rotl(hash, 5) ^ word) * 0x9e3779b97f4a7c15ULL;  // one word changed is another hash
    }
  }
  return hash != 0 ? hash : 1;
}

}  // namespace crosstalk
